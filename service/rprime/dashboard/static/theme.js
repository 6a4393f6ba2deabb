/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 228f9692f6bbcd208f7a3f4de76825bbea44d8203ecfe5eb8fdbbbbafb04790a */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
