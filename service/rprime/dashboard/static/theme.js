/* Built by `npm run build` in dashboard/script; sources: 05ed9373fb24703a5180549dc69ae029e42b6799d6d44f8cae75ff0322eedbdd */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
