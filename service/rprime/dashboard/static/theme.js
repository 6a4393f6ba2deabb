/* Built by `npm run build` in dashboard/script; sources: cebed7b0cd866eec3b76b068dbd6cdb3d00d1f2c25010cde0711ee0969b21586 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
