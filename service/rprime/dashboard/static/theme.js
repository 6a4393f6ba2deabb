/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: c289c80fc7cda856da765cf79de809ab8d163a316890efc9c343906d89aa647d */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
