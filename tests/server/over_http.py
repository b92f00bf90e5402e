"""A hook that is sent over loopback HTTP."""

import http.client
import json

from checkrein.server.http import token
from patience import PATIENCE


def post(port, body, path="/hooks/claude-code/gate", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    given = {"Authorization": f"Bearer {token()}"} | {k.replace("_", "-"): v for k, v in headers.items()}
    connection.request("POST", path, json.dumps(body), {k: v for k, v in given.items() if v is not None})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content
