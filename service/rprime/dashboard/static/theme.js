/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 40483c63fd60d6fd67a40d3dca52a0e48b8dfbf05a8f24f73b9241a4c3041c2e */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
