/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 2629776e810c73138769b94080ee47b181c3893e71e56da14ffbd1c4e5fb5ca9 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
