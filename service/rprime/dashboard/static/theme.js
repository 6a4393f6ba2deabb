/* Built by `npm run build` in dashboard/script; sources: e7f5668aa06a66ca9a0a3895582f1c8a747e17c0d4eb9c077b1831e9fe46aee3 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
