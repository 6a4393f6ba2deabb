"""What is sent to a process that answers large bodies, and back."""

from struct import Struct

ASKED = Struct("!QQ")
"""Before a request: the sizes of the pickled question and of the body."""
ANSWERED = Struct("!Q")
"""Before an answer: the size of what is pickled."""
