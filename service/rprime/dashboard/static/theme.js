/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: c63aa6809391a473e21190853235e6da216cb3f60571eda1915f3bd9d2fd5bb9 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
