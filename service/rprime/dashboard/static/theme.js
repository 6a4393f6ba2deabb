/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: b97a12daa89b5bd230235de522d0db2f68930d05056c4e595b72408a3dc10390 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
