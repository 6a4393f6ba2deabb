/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 7e13960364627ccf0f7ca4de858f11b911f0482513e910fca2ee4d74fb1a3ece */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
