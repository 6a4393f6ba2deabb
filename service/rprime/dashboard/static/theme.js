/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: 2e0600bb3b64f45d54545bb93fd3149964d1647eb458b2b1ad8bbf0b50ab9a73 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
