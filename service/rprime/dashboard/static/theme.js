/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: fccf5b044d2aa9f4a932e65fa0a9c09044c2731fc00996597edc79c645939cbb */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
