/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 741c3ff26d7cb887db0798bf81d67cc2b4bff342e9ed5764c4aec1df74901c11 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
