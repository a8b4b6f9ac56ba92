"""For all tests: an interrupt interrupts.

A shell that starts a job in the background tells it to ignore interrupts, and every process below
inherits that. Tests of what Ctrl-C does must not depend on how the suite was started.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
