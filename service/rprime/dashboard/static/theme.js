/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 9cd8119cc31795452efaf07af7befac0aaf91a20f48a5e6c1b4dd72f4c786b8b */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
