"""What the server answers is what `sigma predict` writes; what it refuses, it refuses in a sentence."""

from __future__ import annotations

import csv
import json
import re
import time
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from sigma_run import Trained, load
from sigma_run.launcher import main
from sigma_serve.bodies import CSV, JSON

ROWS = [[0.5, 0, 1, 1], [2.5, 1, 0, 0], [7, 0, 1, 2]]
OBJECTS = [
    {"length": 0.5, "kind": "b", "width": 1},
    {"width": 0, "kind": "a", "length": 2.5},
    {"length": 7, "kind": "b", "width": 2},
]
TABLE = "length,kind,width\n0.5,b,1\n2.5,a,0\n7,b,2\n"
NONE = "there is no row"


def ask(client: TestClient, body: object, kind: str = JSON, **headers: str) -> tuple[int, dict]:
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    answer = client.post("/predict", content=content, headers={"content-type": kind, **headers})
    return answer.status_code, answer.json()


def alone(model: Trained, rows: list) -> np.ndarray:
    """Return the predictions of rows, each by itself."""
    return np.concatenate([model.predict(np.array([row], np.float64)) for row in rows])


# -- answers -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "kind"),
    [(ROWS, JSON), ({"rows": ROWS}, JSON), (OBJECTS, JSON), ({"rows": OBJECTS}, JSON), (TABLE, CSV)],
    ids=["lists", "rows", "objects", "rows of objects", "table"],
)
def test_rows_in_every_form_are_answered_with_the_bits_of_each_row_alone(client, model, body, kind):
    status, answer = ask(client, body, kind)
    expected = alone(model, [[0.5, 0, 1, 1], [2.5, 1, 0, 0], [7, 0, 1, 2]])
    assert status == 200
    assert [row["row"] for row in answer["predictions"]] == [0, 1, 2]
    for row, values in zip(answer["predictions"], expected, strict=True):
        assert row["probabilities"] == values.tolist()
        assert row["class"] == values.argmax()
        assert row["label"] == ("iris", "lily", "rose")[values.argmax()]
        assert row["probability"] == values.max()
    np.testing.assert_allclose(expected, model.predict(np.array(ROWS)), rtol=1e-6)  # as a batch, to rounding


def test_the_words_are_those_of_sigma_predict(client, flowers, tmp_path, capsys):
    from_file = tmp_path / "some.csv"
    from_file.write_text(TABLE)
    assert main(["predict", str(flowers), str(from_file), "--json", "--top", "2"]) == 0
    rows = json.loads(capsys.readouterr().out)["predictions"]
    answer = client.post("/predict?top=2", content=TABLE, headers={"content-type": CSV}).json()["predictions"]
    assert [{*row} - {"input"} for row in rows] == [{*row} for row in answer]
    assert [[top["label"] for top in row["top"]] for row in rows] == [
        [top["label"] for top in row["top"]] for row in answer
    ]


def test_a_table_is_answered_where_it_is_preferred(client, model):
    headers = {"content-type": JSON, "accept": "text/csv, application/json;q=0.5"}
    answer = client.post("/predict", content=json.dumps(ROWS), headers=headers)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = [*csv.DictReader(StringIO(answer.text))]
    assert [row["row"] for row in rows] == ["0", "1", "2"]
    assert [float(row["probability_lily"]) for row in rows] == alone(model, ROWS)[:, 1].tolist()
    for accept in ("*/*", "application/json", "text/csv;q=0.1, */*;q=0.5", "text/html", "text/csv;q=0"):
        answer = client.post("/predict", content=json.dumps(ROWS), headers={**headers, "accept": accept})
        assert answer.headers["content-type"] == JSON, accept


def test_numbers_are_answered_in_the_units_of_their_column(prices, served):
    model = load(prices)
    with served(model) as client:
        status, answer = ask(client, [{"length": 3, "width": 2}])
        assert status == 200
        (row,) = answer["predictions"]
        assert row == {"row": 0, "values": model.predict(np.array([[3.0, 2.0]]))[0].tolist(), "columns": ["price"]}


def test_pictures_are_taken_as_nested_lists_or_flat(pictures, served):
    model, values = load(pictures), np.linspace(0, 1, 12)
    with served(model) as client:
        nested, flat = ask(client, [values.reshape(3, 4).tolist()]), ask(client, [values.tolist()])
        assert nested == flat
        assert nested[1]["predictions"][0]["probabilities"] == model.predict(values.reshape(1, 3, 4))[0].tolist()
        assert ask(client, [{"a": 1}]) == (
            422,
            {"error": "the network was not trained on columns with names. Send each row as a list."},
        )
        assert ask(client, [[1.0] * 11])[1]["error"].startswith("each row must have the shape [3, 4] (got [11])")


# -- refusals ----------------------------------------------------------------------------------------------------------
DEEP = "[" * 50_000
REFUSED = [
    ("", JSON, 400, "the body is not JSON: Expecting value"),
    (DEEP, JSON, 400, "the body is nested too deeply"),
    ("[[NaN, 1, 1, 1]]", JSON, 400, "NaN is not a number of JSON"),
    ("[[-Infinity, 1, 1, 1]]", JSON, 400, "-Infinity is not a number of JSON"),
    (b"[[\xff]]", JSON, 400, "the body is not UTF-8: byte 2 is not"),
    (f"[[{'9' * 5000}, 1, 1, 1]]", JSON, 400, "the body is not JSON: Exceeds the limit"),
    ("[]", JSON, 422, NONE),
    ("7", JSON, 422, "the body must be a list of rows (got a number)"),
    ('{"rows": 1, "more": 2}', JSON, 422, "the body must be a list of rows (got an object)"),
    ("[[1e999, 1, 1, 1]]", JSON, 422, "inf is not finite"),
    ("[[1e39, 1, 1, 1]]", JSON, 422, "is too large for float32"),
    (f"[[{10**30}, 1, 1, 1]]", JSON, 422, "row 0 holds an integer that is too large"),
    ("[[1, 1, 1]]", JSON, 422, "each row must have the shape [4] (got [3])"),
    ("[1, 1, 1, 1]", JSON, 422, "each row must have the shape [4] (got [])"),
    ("[[1, 1, 1, 1], [1]]", JSON, 422, "the rows have different lengths. Send 4 numbers in each."),
    ("[[1, 1, 1, null]]", JSON, 422, "row 0 holds null"),
    ('[[1, 1, 1, 1], [1, 1, 1, "a"]]', JSON, 422, "row 1 holds a text"),
    ('[{"length": 1, "kind": "a"}]', JSON, 422, "there is no column 'width'"),
    ('[{"length": 1, "kind": "a", "width": 1, "wdith": 1}]', JSON, 422, "'wdith'"),
    ('[{"length": 1, "kind": "new", "width": 1}]', JSON, 422, "'new'"),
    ('[{"length": 1, "kind": "a", "width": null}]', JSON, 422, "column 'width', row 0: a value is missing"),
    ('[{"length": [1], "kind": "a", "width": 1}]', JSON, 422, "column 'length'"),
    ('[{"length": "x", "kind": "a", "width": 1}]', JSON, 422, "column 'length'"),
    ('[{"length": 1, "kind": "a", "width": 1}, [1]]', JSON, 422, "row 1 is a list, and row 0 an object"),
    ("", CSV, 422, NONE),
    (" \n\n", CSV, 422, NONE),
    ("length,kind,width\n", CSV, 422, ""),
    ("length,kind\n1,a\n", CSV, 422, "there is no column 'width'"),
    ("length,kind,width\n1,a,x\n", CSV, 422, "body:2: column 'width': 'x' is not a number"),
    ("length,kind,width\n1,new,1\n", CSV, 422, "body:2"),
    (b"length,kind,width\n1,\xff,1\n", CSV, 422, "body"),
    ("length,kind,width\n1,a,1,1\n", CSV, 422, "body:2"),
    ("x", "text/plain", 415, "the body must be JSON (application/json) or a table (text/csv)."),
]


@pytest.mark.parametrize(("body", "kind", "status", "why"), REFUSED, ids=range(len(REFUSED)))
def test_a_body_that_does_not_fit_is_refused_in_a_sentence(client, body, kind, status, why):
    answered, answer = ask(client, body, kind)
    assert answered == status, answer
    assert why in answer["error"]
    assert answer["error"].endswith(".")
    assert "/" not in answer["error"].replace("application/json", "").replace("text/csv", "")  # no path of the server
    assert ask(client, ROWS)[0] == 200


def test_more_rows_and_bytes_than_allowed_are_refused(client):
    assert ask(client, [[0, 0, 0, 0]] * 101)[1]["error"].startswith("there are more than 100 rows.")
    assert ask(client, "length,kind,width\n" + "1,a,1\n" * 101, CSV)[0] == 413
    assert ask(client, "length,kind,width" + "\r1,a,1" * 101, CSV)[0] in (413, 422)
    assert ask(client, [[0, 0, 0, 0]] * 100)[0] == 200
    assert ask(client, [0] * 1_000_000)[0] == 413
    assert ask(client, " " * 100_001) == (413, {"error": "the body is larger than 100,000 bytes."})
    chunks = client.post("/predict", content=(b" " * 1000 for _ in range(200)), headers={"content-type": JSON})
    assert (chunks.status_code, chunks.json()) == (413, {"error": "the body is larger than 100,000 bytes."})


def test_a_million_rows_are_refused_by_their_number(model, served):
    with served(model) as client:
        assert ask(client, "[" + "0," * 999_999 + "0]")[0] == 413


def test_names_that_differ_in_every_row_take_neither_time_nor_memory(model, served):
    rows = [{f"name {row} {i}": 1 for i in range(30)} for row in range(9_000)]
    with served(model) as client:
        began = time.monotonic()
        status, answer = ask(client, rows)
        assert time.monotonic() - began < 10
    assert status == 422
    assert len(answer["error"]) < 1000


def test_other_mistakes_of_a_request_are_refused(client):
    assert ask(client, ROWS, **{"content-encoding": "gzip"})[0] == 415
    answer = client.post("/predict?top=none", content="[]", headers={"content-type": JSON})
    assert (answer.status_code, answer.json()) == (
        422,
        {"error": "top: must be a whole number from 1 on (got 'none')."},
    )
    assert client.get("/predict").status_code == 405
    assert (client.get("/nothing").status_code, [*client.get("/nothing").json()]) == (404, ["error"])
    assert ask(client, ROWS, origin="http://evil.example")[0] == 403
    assert ask(client, ROWS, host="evil.example")[0] == 421
    assert ask(client, ROWS, origin="http://127.0.0.1:8470")[0] == 200


def test_truth_counts_as_one_and_zero(client):
    bodies = [[True, False, True, False]], [[True, False, 1, 0.0]], [[1, 0, 1, 0]]
    answers = [ask(client, body) for body in bodies]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0] == 200


def test_values_that_json_lacks_are_null(client, model, monkeypatch):
    monkeypatch.setattr(type(model), "predict", lambda *_, **__: np.array([[np.nan, 0.5, np.inf]]))
    assert ask(client, ROWS[:1])[1]["predictions"][0]["probabilities"] == [None, 0.5, None]


# -- the other paths ---------------------------------------------------------------------------------------------------
def test_health_metrics_and_the_description_say_what_is_served(client, model):
    ask(client, ROWS)
    ask(client, "[]")
    about = client.get("/health").json()
    assert (about["status"], about["run"], about["checkpoint"]) == ("ok", "flowers", model.path.name)
    text = client.get("/metrics").text
    assert 'sigma_serve_requests_total{status="200"} 1.0' in text
    assert "sigma_serve_errors_total 1.0" in text
    assert "sigma_serve_rows_total 3.0" in text
    assert "sigma_serve_seconds_count 2.0" in text
    api = client.get("/openapi.json").json()
    assert api["openapi"] == "3.1.0"
    schema = api["paths"]["/predict"]["post"]["requestBody"]["content"][JSON]["schema"]
    row = schema["oneOf"][1]["items"]["oneOf"]
    assert [*row[0]["properties"]] == ["length", "kind", "width"]
    assert row[1]["minItems"] == row[1]["maxItems"] == 4
    assert schema["oneOf"][1]["maxItems"] == 100


def test_the_page_needs_nothing_from_elsewhere_and_may_run_its_own_script_alone(client):
    answer = client.get("/")
    assert answer.headers["content-type"].startswith("text/html")
    assert not re.findall(r'https?://|src=|<link|@import|url\(|\son\w+="|style="', answer.text)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    for path in ("/predict", "/health", "/metrics", "/openapi.json"):
        assert path in answer.text


def test_a_token_is_asked_for_wherever_the_network_can_be_seen(model, served):
    with served(model, token="a" * 16) as client:
        for path in ("/metrics", "/openapi.json"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers={"authorization": f"Bearer {'a' * 16}"}).status_code == 200
        assert ask(client, ROWS)[0] == 401
        assert ask(client, ROWS, authorization=f"Bearer {'a' * 16}")[0] == 200
        assert client.get("/").status_code == client.get("/health").status_code == 200
        wrong = [ask(client, ROWS, authorization="Bearer wrong")[0] for _ in range(12)]
        assert wrong[:10] == [401] * 10
        assert 429 in wrong[10:]


def test_a_path_of_the_run_is_not_told(client, flowers: Path):
    for path in ("/health", "/openapi.json", "/", "/nothing"):
        assert str(flowers.parent) not in client.get(path).text
