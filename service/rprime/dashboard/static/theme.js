/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 9e2219a7a42ef40a514593d0cacea118eca26dc745eafe01eeadf5dbea9baad8 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
