import json, httpx, copy
d=json.load(open('openapi/openapi.json'))
c=httpx.Client(base_url="http://127.0.0.1:8931",timeout=60)
for p,ms in d['paths'].items():
    for m,o in ms.items():
        j=o.get('requestBody',{}).get('content',{}).get('application/json')
        if not j: continue
        ex=[j['example']] if 'example' in j else [e['value'] for e in j['examples'].values()]
        for e in ex:
            path=p.replace('{project}','digits').replace('{alias}','champion')
            r=c.request(m,path,json=e); print(m,p,r.status_code, r.text[:160] if r.status_code>=400 else '')
base={"MatrixRequest":{"confusion_matrix":[[5,1],[2,7]]},"LabelsRequest":{"y_true":["a","b"],"y_pred":["a","b"]},"ScoresRequest":{"y_true":["a","b"],"y_score":[[.7,.3],[.2,.8]],"labels":["a","b"]},"CellsRequest":{"labels":["a","b"],"cells":[["a","a",3],["b","b",2]]}}
S=d['components']['schemas']
for n,b in base.items():
    r=c.post('/evaluate',json=b); print(n,r.status_code,r.text[:200] if r.status_code>=400 else '')
    for k,v in S[n]['properties'].items():
        if v.get('default','x') is None:
            e={**b,k:None}
            r=c.post('/evaluate',json=e)
            if r.status_code>=400: print('  null refused',k,r.json().get('errors',[{}])[0].get('detail'), v.get('type') or v.get('anyOf') or list(v))
