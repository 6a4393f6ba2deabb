/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 106f0eeec747349512a9d9689fc5b006a5649f3aa6c917d763e10a28318c9c78 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
