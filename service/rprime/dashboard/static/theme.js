/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 596a1b34241f1b688dc88fd7b60cb77632e336238e46e27a2af4623362cd1b39 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
