/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: c88ea777a8a9ae729ff55c972067bd66b18ab26d560212446a7b5fc614be9d5e */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
