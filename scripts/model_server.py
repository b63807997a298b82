"""Serves a GGUF file on loopback, until its standard input is closed. Prints the address.

Run by scripts/test_model.py with the interpreter that has xllamacpp; knows nothing of Tacit.
"""

import sys

import xllamacpp

CONTEXT = 1024


def main() -> None:
    model, threads = sys.argv[1], int(sys.argv[2])
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    # Threads that wait for each other spin: on a busy machine two are slower than one.
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
