import subprocess
import sys

import pytest

from checkrein.doors.gateway.pipes import PipeError, pipe_for
from checkrein.settings.servers import ServerSpec


def test_a_command_is_a_process_and_a_url_a_connection():
    def ignore(_):
        raise AssertionError

    made = pipe_for(ServerSpec(name="a", command="cat"), ignore, ignore)
    assert type(made).__name__ == "StdioPipe"
    made = pipe_for(ServerSpec(name="a", url="https://a.example/mcp"), ignore, ignore)
    assert type(made).__name__ == "HttpPipe"
    assert made.pid is None and made.ended == "" and made.tail == () and made.fault is None


def test_what_speaks_http_is_not_loaded_for_a_process():
    code = (
        "import sys; from checkrein.doors.gateway import keeper, http_pipe, stdio_pipe; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"mcp", "httpx2", "pydantic", "anyio", "mcp_types"} & set(done.stdout.split())


@pytest.mark.parametrize("lasting", [True, False])
def test_an_error_says_whether_trying_again_can_help(lasting):
    error = PipeError("It broke.", remedy="Mend it.", lasting=lasting)
    assert (error.lasting, str(error)) == (lasting, "It broke. Mend it.")
