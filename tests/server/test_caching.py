"""What a browser may keep, and what comes compressed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from server import assets
from server.caching import wants_gzip
from tests.server.asgi import Client, serving

KEPT = "public, max-age=31536000, immutable"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("caching")) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/r/example-two-layer-net", "/embed/example-two-layer-net", "/compare/a/b"])
def test_all_that_a_page_loads_is_kept_for_ever(client: Client, path: str) -> None:
    page = client.get(path)
    assert page.headers["cache-control"] == "no-store"
    named = re.findall(r'"(/static/[^"]+)"', page.text)
    assert {re.split(r"[/?]", address)[2] for address in named} == {"app.css", "app.js", "layout-worker.js"}
    for address in named:
        answer = client.get(address)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, KEPT), address
        assert hashlib.sha256(answer.content).hexdigest().startswith(address.split("?v=")[1])


@pytest.mark.parametrize("query", ["", "?v=", "?v=" + "0" * 32])
def test_without_its_own_tag_a_file_is_asked_about_each_time(client: Client, query: str) -> None:
    answer = client.get(f"/static/app.css{query}")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")
    again = client.get(f"/static/app.css{query}", {"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", answer.headers["etag"])
    assert client.get(f"/static/app.css{query}", {"if-none-match": 'W/"other"'}).status_code == 200


def test_a_changed_file_has_another_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    (tmp_path / "app.js").write_text("one")
    before = assets.address("app.js")
    assert client.get(before).headers["cache-control"] == KEPT
    (tmp_path / "app.js").write_text("another")
    after = assets.address("app.js")
    assert (client.get(after).text, client.get(after).headers["cache-control"]) == ("another", KEPT)
    # A page that was loaded before the change gets the new file, and does not keep it under the old address.
    assert (client.get(before).text, client.get(before).headers["cache-control"]) == ("another", "no-cache")


def test_what_is_not_built_has_an_address_and_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    assert client.get(assets.address("app.js")).status_code == 404


@pytest.mark.parametrize(
    "name", ["..%2fapp.py", "%2e%2e%2fapp.py", "%2e%2e", "", "%00", "App.js", "nope.js", "a" * 90, "a" * 5000]
)
def test_nothing_else_is_served(client: Client, name: str) -> None:
    assert client.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize("path", ["/static/app.js", "/static/layout-worker.js", "/static/app.css", "/api/v1/examples"])
def test_comes_compressed_to_who_reads_it(client: Client, path: str) -> None:
    packed = client.get(path, {"accept-encoding": "gzip"})
    plain = client.get(path, {"accept-encoding": "identity"})
    assert (packed.headers["content-encoding"], plain.headers.get("content-encoding")) == ("gzip", None)
    assert packed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) * 2 < int(plain.headers["content-length"])


@pytest.mark.parametrize(
    "path", ["/api/v1/examples", "/api/v1/health", "/api/v1/runs/example-two-layer-net", "/api/docs"]
)
def test_what_changes_is_not_kept(client: Client, path: str) -> None:
    assert client.get(path).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("accepted", "reads"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5, br", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*;q=0", False),
        ("identity", False),
        ("", False),
    ],
)
def test_who_reads_gzip(accepted: str, reads: bool) -> None:
    assert wants_gzip(Headers({"accept-encoding": accepted})) == reads


def test_who_says_nothing_reads_no_gzip() -> None:
    assert not wants_gzip(Headers({}))
