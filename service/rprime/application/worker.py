"""Worker process for large requests, so that neither their cost nor a crash hits the service.

It talks through the socket that is its standard input, and ends when that is closed.
"""

import pickle

from rprime.application.evaluate import Failure, evaluate_stream

# Imported now, since it takes time, and a worker starts before it is needed.
from rprime.evidence import csv_body as _csv_body  # noqa: F401 (imported early, with pyarrow)
from rprime.problems.problem import Problem
from rprime.server.worker_channel import Channel, GoneError, serve
from rprime.server.worker_limits import end_first


def main() -> None:
    """Answer until the service closes the socket."""
    end_first()
    serve(_answer)


def _answer(request: bytes, body: Channel) -> bytes:
    try:
        found: object = evaluate_stream(body, pickle.loads(request))  # noqa: S301 (from the service itself)
    except Problem as problem:
        found = problem
    except GoneError:
        raise
    except Exception as error:  # noqa: BLE001 (the service logs every error)
        from rprime.server.failures import traced, where  # noqa: PLC0415 (rarely needed)

        found = Failure("".join(traced(error)), where(error))
    return pickle.dumps(found, protocol=5)


if __name__ == "__main__":
    main()
