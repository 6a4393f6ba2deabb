/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: ad0ceb531e470187ed1c0ee61b3205cef0f3b06197acb18cc5e29eea71be7796 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
