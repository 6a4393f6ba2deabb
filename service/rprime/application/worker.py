"""Worker process for what is heavy, so that neither its cost nor a crash hits the service.

It talks through the socket that is its standard input, and ends when that is closed.
"""

import pickle
import sys
from importlib import import_module

from rprime.application.evaluate import Failure

# Imported now, since it takes time, and a worker starts before it is needed.
from rprime.application.work import Raised, is_of_store
from rprime.core import special
from rprime.evidence import arrow_body as _arrow_body  # noqa: F401 (imported early, with pyarrow)
from rprime.evidence import csv_body as _csv_body  # noqa: F401 (imported early, with pyarrow)
from rprime.problems.problem import Problem
from rprime.server.worker_channel import Channel, GoneError, serve
from rprime.server.worker_limits import end_first

special.load()


def main() -> None:
    """Answer until the service closes the socket; first import the modules that it names."""
    end_first()
    for name in sys.argv[1:]:
        import_module(name)
    serve(_answer)


def _answer(request: bytes, body: Channel) -> bytes:
    """Do the work that a request is: a pickled function of the channel."""
    try:
        answer = pickle.loads(request)(body)  # noqa: S301 (from the service itself)
        return pickle.dumps(answer, protocol=5)
    except Problem as problem:
        failure: object = problem
    except GoneError:
        raise
    except Exception as error:  # noqa: BLE001 (the service logs every error)
        if is_of_store(error):
            failure = Raised()
        else:
            from rprime.server.failures import traced, where  # noqa: PLC0415 (rarely needed)

            failure = Failure("".join(traced(error)), where(error))
    return pickle.dumps(failure, protocol=5)


if __name__ == "__main__":
    main()
