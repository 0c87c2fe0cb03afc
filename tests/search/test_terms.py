"""Text as terms."""

from __future__ import annotations

import pytest

from toolspeak.search.terms import MAX_TEXT, MAX_WORD, length, spoken, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getHTTPStatus", ["get", "http", "status", "gethttpstatus"]),
        ("get_http_status", ["get", "http", "status"]),
        ("geo.distance-of", ["geo", "distanc"]),
        ("EC2", ["ec", "2", "ec2"]),
        ("GitHub", ["git", "hub", "github"]),
        ("userIDs", ["user", "id", "userid"]),
        ("What is the WEATHER forecast?", ["weather", "forecast"]),
        ("Prévisions météo", ["previs", "meteo"]),
        ("naïve Straße", ["naiv", "strass"]),
        ("天气", ["天", "气", "天气"]),
        ("天气forecast", ["天", "气", "天气", "forecast"]),
        ("날씨를 알려", ["날", "씨", "를", "날씨", "씨를", "알", "려", "알려"]),
        ("カメラ", ["カ", "メ", "ラ", "カメ", "メラ"]),
        ("ｆｕｌｌ　ｗｉｄｔｈ", ["full", "width"]),
        ("मौसम की जानकारी।", ["मौसम", "की", "जानकारी"]),
        ("погода в Москве", ["погода", "в", "москве"]),
        ("الطَّقْس", ["الطقس"]),
        ("שָׁלוֹם", ["שלום"]),
        ("wea\u200bther fore\u202ecast", ["weather", "forecast"]),
        ("soft\u00adware\x07 tags\U000e0041", ["softwar", "tag"]),
        ("one\ntwo\tthree", ["one", "two", "three"]),
        ("", []),
        ("?!", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("getWeather_forCity", "get Weather for City"),
        ("EC2.describe-instances", "EC 2 describe instances"),
        ("météo_größe", "météo größe"),
        ("天气forecast", "天气forecast"),
        ("मौसम_city", "मौसम city"),
    ],
)
def test_a_name_as_one_says_it(name: str, expected: str) -> None:
    assert spoken(name) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("and in Paris?", 3),
        ("那上海呢？", 2),
        ("じゃあ、パリは？", 3),
        ("그럼 파리는?", 2),
        ("แล้วปารีสล่ะ", 3),
        ("天气 today !", 2),
        ("", 0),
    ],
)
def test_how_many_words(text: str, words: int) -> None:
    assert length(text) == words


def test_thai_words_are_found_inside_others() -> None:
    assert set(terms("อากาศ")) <= set(terms("พยากรณ์อากาศวันนี้"))


def test_long_texts_and_words_are_bounded() -> None:
    assert len(terms("ab " * 1_000_000)) <= MAX_TEXT
    assert terms("x" * 100_000) == ["x" * MAX_WORD]
    assert max(map(len, terms("Ab" * 4_000))) <= MAX_WORD


def test_neighbours_joined_meet_what_is_written_as_one() -> None:
    assert terms("data_base of users", joined=True) == ["data", "base", "user", "databas", "baseus"]
    assert terms("databases") == ["databas"]
