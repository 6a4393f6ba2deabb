/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 3aaae316109f8536c242de2a2ac43fdecef46a391fa00404c82e97064f28d095 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
