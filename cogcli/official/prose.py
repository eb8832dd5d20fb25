"""Running text as sentences and words: summaries, keywords, readability.

Words come from white space and punctuation; scripts written without spaces are read as pairs of characters.
Stop words and syllables are English. Nothing is random: equal scores keep the order of the text.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_SENTENCE = 1_000
_MAX_PHRASE = 3
_MAX_STEMMED = 2_000
_MAX_STEM_LETTERS = 40

# Not `\w`: the vowel signs of Indic scripts are marks, and belong to their word.
_MARKS = r"!-&(-,./:-@\[-`{-~¡-©«-´¶-¹»-¿‐-‘‚-‧‰-⁞、-〟！-／：-＠［-｀｛-･।॥؟،؛۔"
_WORD = re.compile(rf"[^\s{_MARKS}]+")
_PUNCTUATION = re.compile(rf"[{_MARKS}]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]{2,}")
_LIST_MARK = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s")
_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_INITIALS = re.compile(r"(?:[a-z]\.)+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*+")
_VOWELS = re.compile(r"[aeiouyàâäáãåæèéêëìíîïòóôöõøùúûüýÿ]+")
_WIDE_STOPS = {ord(stop): f"{stop} " for stop in "。！？｡"}
_CLOSERS = "\"'”’»)]}*_"
_STOPS = tuple(".!?…。！？｡।؟۔")


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ABBREVIATIONS = _listed(
    """approx. cf. co. corp. dept. dr. e.g. est. etc. fig. i.e. inc. jr. ltd. mr. mrs. ms. prof. sr. st. vol.
    vs."""
)
_STOP_WORDS = _listed(
    """a about above after again all also am an and any are aren't as at be became because been before being
    below between both but by can can't cannot could couldn't did didn't do does doesn't doing don't done down
    during each either else ever every few for from further get gets got had has hasn't have haven't having he
    her here hers him his how however i if in into is isn't it it's its itself just least less let let's like
    made make makes many may me might more most much must my neither no nor not now of off often on once one
    only or other our ours out over own per put quite rather said same say says she should shouldn't since so
    some still such take than that that's the their theirs them then there these they they're this those
    though through thus to too two under until up upon us use used uses using very via was wasn't way we we're
    well were weren't what when where whether which while who whom whose why will with within without won't would
    wouldn't yet you you're your yours"""
)
_SNOWBALL = {
    "da": "danish",
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}
# Flesch reading ease: the least score of each level.
_LEVELS = ((80.0, "easy"), (60.0, "plain"), (40.0, "demanding"))
_WORDS_PER_MINUTE = 230
# A line without a full stop is a title or a label as a rule; the first sentence says what the text is about.
_WHOLE = {True: 1.0, False: 0.5}
_OPENING = 1.25


def summarize_by_frequency(
    text: str, max_sentences: int = 3, max_words: int | None = None
) -> dict[str, object]:
    """The sentences whose words the text repeats most, in the order of the text; the first counts more.

    A sentence that says mostly what a chosen one says is passed over. With `max_words` only sentences that
    still fit are taken; if none fits, the best one is cut and ends with an ellipsis.
    """
    _at_least_one(max_sentences=max_sentences, max_words=max_words)
    sentences = _sentences(text)
    ranked = _ranked(sentences)
    chosen: list[int] = []
    left = max_words
    for index in ranked:
        cost = len(sentences[index].split())
        if len(chosen) == max_sentences:
            break
        if (left is None or cost <= left) and not _repeats(index, chosen, sentences):
            chosen.append(index)
            left = None if left is None else left - cost
    return _summary(sentences, sorted(chosen) or ranked[:1], max_words)


def summarize_by_lead(text: str, max_sentences: int = 3, max_words: int | None = None) -> dict[str, object]:
    """The first sentences of the text, as far as both limits allow: what a news desk calls the lead."""
    _at_least_one(max_sentences=max_sentences, max_words=max_words)
    sentences = _sentences(text)
    chosen: list[int] = []
    words = 0
    for index, sentence in enumerate(sentences[:max_sentences]):
        words += len(sentence.split())
        if max_words is not None and words > max_words:
            break
        chosen.append(index)
    return _summary(sentences, chosen or [0][: len(sentences)], max_words)


def _at_least_one(**limits: int | None) -> None:
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise ValueError(f"{name} must be 1 or more, found {limit}")


def _summary(sentences: list[str], chosen: list[int], max_words: int | None) -> dict[str, object]:
    kept = [_shortened(sentences[index], max_words) for index in chosen]
    summary = " ".join(kept)
    return {
        "summary": summary,
        "sentences": kept,
        "word_count": len(summary.replace("…", "").split()),
        "truncated": any(short != sentences[index] for short, index in zip(kept, chosen, strict=True)),
    }


def _shortened(sentence: str, max_words: int | None) -> str:
    words = sentence.split()
    cut = sentence if max_words is None or len(words) <= max_words else " ".join(words[:max_words])
    cut = cut[:_MAX_SENTENCE]
    return sentence if cut == sentence else f"{cut} …"


def _ranked(sentences: list[str]) -> list[int]:
    """Sentence indices, most telling first."""
    contents = [_content(sentence) for sentence in sentences]
    counts = Counter(word for words in contents for word in words)
    top = max(counts.values(), default=1)
    complete = [sentence.rstrip(_CLOSERS).endswith(_STOPS) for sentence in sentences]
    scores = [
        _telling(words, counts, top) * _WHOLE[done] for words, done in zip(contents, complete, strict=True)
    ]
    if True in complete:
        scores[complete.index(True)] *= _OPENING
    return sorted(range(len(sentences)), key=lambda i: (-scores[i], i))


def _telling(words: list[str], counts: Counter[str], top: int) -> float:
    # Fixed weight in the divisor: without it the shortest sentence wins, with a plain sum the longest does.
    unique = set(words)
    return sum(counts[word] for word in unique) / top / (len(unique) + 6)


def _repeats(index: int, chosen: list[int], sentences: list[str]) -> bool:
    words = set(_content(sentences[index]))
    for other in chosen:
        others = set(_content(sentences[other]))
        if words and len(words & others) / min(len(words), len(others) or 1) > 0.7:
            return True
    return False


def extract_keywords(text: str, max_keywords: int = 10) -> dict[str, object]:
    """Words, and phrases of two or three words that occur more than once, by count times (2 * words - 1).

    A phrase never crosses a stop word or punctuation. A word is passed over when a better phrase holds it at
    least half of the time. `keywords` are the phrases, best first; `scored` gives each with score and count.
    """
    _at_least_one(max_keywords=max_keywords)
    counts = Counter(_phrases(text))
    scores = {p: count * (2 * len(p) - 1) for p, count in counts.items() if count > 1 or len(p) == 1}
    chosen: list[tuple[str, ...]] = []
    for phrase in sorted(scores, key=lambda phrase: -scores[phrase]):
        if len(chosen) == max_keywords:
            break
        if not any(set(phrase) <= set(better) and counts[better] * 2 >= counts[phrase] for better in chosen):
            chosen.append(phrase)
    return _keywords([(" ".join(phrase), float(scores[phrase]), counts[phrase]) for phrase in chosen])


def extract_stemmed_keywords(text: str, max_keywords: int = 10, language: str = "en") -> dict[str, object]:
    """The most frequent words, inflected forms counted together and shown in their commonest form.

    `language` is an ISO 639-1 code. Outside English, words of up to three letters are passed over.
    """
    _at_least_one(max_keywords=max_keywords)
    if language not in _SNOWBALL:
        raise ValueError(f"no stemmer for language {language!r}; there is one for: {', '.join(_SNOWBALL)}")
    least = 3 if language == "en" else 4
    forms = Counter(word for word in _content(text) if least <= len(word) <= _MAX_STEM_LETTERS)
    stem = _stemmer(language)
    families: dict[str, list[tuple[str, int]]] = {}
    for form, count in forms.most_common(_MAX_STEMMED):
        families.setdefault(stem(form), []).append((form, count))
    totals = [(family[0][0], sum(count for _, count in family)) for family in families.values()]
    ranked = sorted(totals, key=lambda total: -total[1])[:max_keywords]
    return _keywords([(form, float(total), total) for form, total in ranked])


def _keywords(ranked: list[tuple[str, float, int]]) -> dict[str, object]:
    scored = [{"keyword": word, "score": round(score, 3), "count": count} for word, score, count in ranked]
    return {"keywords": [word for word, _, _ in ranked], "scored": scored}


def _stemmer(language: str) -> Callable[[str], str]:
    import snowballstemmer

    stem: Callable[[str], str] = snowballstemmer.stemmer(_SNOWBALL[language]).stemWord
    return stem


def score_readability(text: str) -> dict[str, object]:
    """How long and how hard to read: counts, minutes, and for English the Flesch and Flesch-Kincaid scores.

    `level` is easy, plain, demanding or hard; `unrated` if under nine tenths of the letters are basic Latin.
    """
    sentences = _sentences(text)
    words = [word for sentence in sentences for word in _words(sentence)]
    measures: dict[str, object] = {
        "words": len(words),
        "sentences": len(sentences),
        "characters": len(text),
        "words_per_sentence": round(len(words) / len(sentences), 1) if sentences else 0.0,
        "minutes": round(len(words) / _WORDS_PER_MINUTE, 1),
    }
    if not words or not _mostly_latin(words):
        return {"level": "unrated", "measures": measures}
    per_sentence = len(words) / len(sentences)
    per_word = sum(map(_syllables, words)) / len(words)
    ease = round(206.835 - 1.015 * per_sentence - 84.6 * per_word, 1)
    grade = round(0.39 * per_sentence + 11.8 * per_word - 15.59, 1)
    level = next((name for least, name in _LEVELS if ease >= least), "hard")
    return {"level": level, "reading_ease": ease, "grade": grade, "measures": measures}


def _mostly_latin(words: list[str]) -> bool:
    letters = [char for word in words for char in word if char.isalpha()]
    return sum(map(str.isascii, letters)) >= 0.9 * len(letters)


def _syllables(word: str) -> int:
    groups = len(_VOWELS.findall(word))
    silent = word.endswith("e") and not word.endswith(("le", "ee")) and groups > 1
    return max(1, groups - silent)


def check_summary(text: str, summary: str) -> dict[str, object]:
    """Whether a summary stays with its text: every number and name it uses must occur there.

    `unsupported` lists those that do not; a capital at the start of a sentence makes no name. `coverage` is the
    share of the text's 20 commonest content words that the summary uses, `compression` its words over the text's.
    """
    source = {*_NUMBER.findall(text), *_words(text)}
    claims = dict.fromkeys(claim for sentence in _sentences(summary) for claim in _claims(sentence))
    unsupported = [
        claim for claim in claims if claim not in source and not source.issuperset(_words(claim) or [""])
    ]
    common = [word for word, _ in Counter(_content(text)).most_common(20)]
    used = set(_content(summary))
    words = len(_words(text))
    return {
        "grounded": not unsupported,
        "unsupported": unsupported,
        "coverage": round(sum(word in used for word in common) / len(common), 3) if common else 0.0,
        "compression": round(len(_words(summary)) / words, 3) if words else 0.0,
    }


def _made_of(claim: str, source: set[str]) -> bool:
    words = _words(claim)
    return bool(words) and source.issuperset(words)


def _claims(sentence: str) -> list[str]:
    """The numbers of a sentence, and its capitalised words but the first."""
    names = [token.strip("'’-") for token in _WORD.findall(sentence)[1:] if token[:1].isupper()]
    return _NUMBER.findall(sentence) + [name for name in names if name.casefold() not in _STOP_WORDS]


def _sentences(text: str) -> list[str]:
    """The sentences of the running text; a sentence never crosses a paragraph or a list item."""
    found: list[str] = []
    for paragraph in _paragraphs(text):
        tokens = paragraph.translate(_WIDE_STOPS).split()
        start = 0
        for index, token in enumerate(tokens, 1):
            following = tokens[index] if index < len(tokens) else ""
            if not following or _ends(token, following):
                found.append(" ".join(tokens[start:index]))
                start = index
    return found


def _ends(token: str, following: str) -> bool:
    bare = token.rstrip(_CLOSERS)
    if not bare.endswith(_STOPS):
        return False
    if not bare.endswith("."):
        return True
    word = bare.lstrip("\"'“‘«([*_").lower()
    abbreviated = word in _ABBREVIATIONS or _INITIALS.fullmatch(word)
    return not abbreviated and not following[:1].islower()


def _paragraphs(text: str) -> list[str]:
    """Blocks of running text: no Markdown headings, rules, tables, fenced code, no list marks."""
    blocks: list[list[str]] = [[]]
    fenced = False
    for raw in text.splitlines():
        line = raw.strip()
        fence = line.startswith(("```", "~~~"))
        fenced ^= fence
        outside = fenced or fence or not line.strip("-=*_ ") or line[0] == "|" or _HEADING.match(line)
        item = None if outside else _LIST_MARK.match(line)
        if (outside or item) and blocks[-1]:
            blocks.append([])
        if not outside:
            blocks[-1].append(line[item.end() :] if item else line)
    return [" ".join(block) for block in blocks if block]


def _words(text: str) -> list[str]:
    """Lower-case words holding a letter, in order."""
    found: list[str] = []
    for token in _WORD.findall(text):
        word = token.strip("'’-").casefold()
        if _UNSPACED.search(word):
            found.extend(word[i : i + 2] for i in range(len(word) - 1))
        elif any(map(str.isalpha, word)):
            found.append(word)
    return found


def _phrases(text: str) -> list[tuple[str, ...]]:
    """Every run of one to three content words that no stop word or punctuation cuts."""
    phrases: list[tuple[str, ...]] = []
    for piece in (piece for sentence in _sentences(text) for piece in _PUNCTUATION.split(sentence)):
        run: list[str] = []
        for word in _words(piece):
            run = [*run[1 - _MAX_PHRASE :], word] if _tells(word) else []
            # Pairs of characters overlap: side by side they are no phrase.
            run = run[-1:] if _UNSPACED.match(word) else run
            phrases.extend(tuple(run[start:]) for start in range(len(run)))
    return phrases


def _content(text: str) -> list[str]:
    return [word for word in _words(text) if _tells(word)]


def _tells(word: str) -> bool:
    return len(word) > 1 and word.replace("’", "'") not in _STOP_WORDS
