"""Answer the bytes of a request without HTTP: for the routes and for in-process use."""

from rprime.application.request import EvaluationRequest, read_request

__all__ = ["EvaluationRequest", "read_request"]
