/* Built by `npm run build` in dashboard/script; sources: bef799d0f1ff08ad395918a437b02e08eceb3cf5535d15866c7d974886ff2650 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
