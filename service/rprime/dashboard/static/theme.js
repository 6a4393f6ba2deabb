/* Built by `npm run build` in dashboard/script; licences: rprime/static/licenses; sources: e679b672af0b9f82b4cdd75d6ff258b8cecb64b3640ad2154f1afceb0c4dc264 */
(()=>{try{let e=localStorage.getItem("rprime-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}})();
