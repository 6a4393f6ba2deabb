/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 6b640ff3859b90e752478479fed2817f9bee424797a4802661b9b268227a407f */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
