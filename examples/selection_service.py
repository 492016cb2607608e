"""A service that answers selections as JSON, with four threads.

python examples/selection_service.py --port 8080
curl 'http://127.0.0.1:8080/select?kernel=gemm&gpu=a100&NI=2000'

python examples/selection_service.py --self-test 200    # asks itself, and prints how long it took
"""

from __future__ import annotations

import argparse
import json
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import ThreadingMixIn
from urllib.parse import parse_qsl, urlsplit

import eatss

KERNELS = Path(__file__).parents[1] / "kernels"
THREADS = 4


def answer(query: dict[str, str]) -> dict[str, object]:
    """Return the selection that a query asks for.

    Args:
        query: ``kernel`` and ``gpu``; ``target`` and ``dtype`` if wanted; all else are macros.

    Raises:
        eatss.EatssError: the query asks for what there is not.
    """
    known = {path.stem: path for path in KERNELS.glob("*.c")}
    macros = dict(query)
    kernel, gpu = macros.pop("kernel", ""), macros.pop("gpu", "")
    if kernel not in known:
        raise LookupError(f"there is no kernel '{kernel}'; there are {', '.join(sorted(known))}")
    selection = eatss.select(
        known[kernel],
        gpu=gpu,
        target=macros.pop("target", "cuda"),
        dtype=macros.pop("dtype", None),
        defines=macros,
    )
    return {
        "kernel": kernel,
        "gpu": selection.gpu,
        "dtype": selection.dtype,
        "kernels": [
            {"name": one.name, "tiles": dict(one.tile_sizes), "optimal": one.optimal}
            for one in selection.kernels
        ],
    }


class Handler(BaseHTTPRequestHandler):
    """Answers ``GET /select?kernel=NAME&gpu=NAME``."""

    def do_GET(self) -> None:
        """Answer one request."""
        try:
            found, status = answer(dict(parse_qsl(urlsplit(self.path).query))), 200
        except (eatss.EatssError, LookupError) as error:
            found, status = {"error": str(error)}, 400
        body = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of requests that went well."""


class Server(ThreadingMixIn, HTTPServer):
    """A server whose requests wait for one of ``THREADS`` threads."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self._room = threading.BoundedSemaphore(THREADS)

    def process_request(self, request, client_address) -> None:
        """Take a request when a thread is free."""
        self._room.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address) -> None:
        """Answer it, and free the thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()


def self_test(requests: int) -> int:
    """Ask a server of our own from four threads; print how long answers took."""
    server = Server(0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"http://127.0.0.1:{server.server_port}/select"
    asked = [
        f"{place}?kernel={kernel}&gpu={gpu}"
        for kernel in ("gemm", "atax", "mvt", "jacobi-2d")
        for gpu in ("a100", "h200")
    ]

    def ask(number: int) -> tuple[float, str]:
        began = time.perf_counter()
        with urllib.request.urlopen(asked[number % len(asked)], timeout=120) as found:
            text = found.read().decode()
        return time.perf_counter() - began, text

    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(ask, range(requests)))
    server.shutdown()
    different = {text for _, text in answers}
    times = sorted(seconds for seconds, _ in answers)
    shares = {share: times[round(share / 100 * (len(times) - 1))] for share in (50, 90, 99, 100)}
    print(f"{requests} answers to {len(asked)} questions from {THREADS} threads")
    print(", ".join(f"{share} % within {1e3 * s:.1f} ms" for share, s in shares.items()))
    return 0 if len(different) == len(asked) else 1


def main() -> int:
    """Serve, or test."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--self-test", type=int, metavar="REQUESTS")
    given = parser.parse_args()
    if given.self_test:
        return self_test(given.self_test)
    server = Server(given.port)
    print(f"listening on http://127.0.0.1:{server.server_port}/select?kernel=gemm&gpu=a100")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
