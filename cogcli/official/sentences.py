"""Running text as sentences and words, as all shipped functions of texts read it.

Sentences are what stands in the text, character by character. Words come from white space and punctuation; scripts
written without spaces are read as pairs of characters. Stop words are English, but
for keywords; abbreviations English and German.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Set

# Not `\w`: the vowel signs of Indic scripts are marks, and belong to their word.
_MARKS = r"!-&(-,./:-@\[-`{-~¡-©«-´¶-¹»-¿‐-‘‚-‧‰-⁞、-〟！-／：-＠［-｀｛-･।॥؟،؛۔"
WORD = re.compile(rf"[^\s{_MARKS}]+")
PUNCTUATION = re.compile(rf"[{_MARKS}]+")
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]{2,}"
)
_MARK = re.compile(
    r"\s{0,40}(?:(?P<heading>#{1,6})|[-*+•]|\(?[0-9]{1,3}[.)]|\(?[a-zA-Z]\))(?:\s+|$)"
)
RUNNING = ("paragraph", "item")
# `J.`, `e.g.`, `v.`, but not the unit at the end of `12 t.`
_INITIALS = re.compile(r"[A-Z]\.|[cdiouvz]\.|(?:[A-Za-z]\.){2,}")
# A token ends at white space, and after a full stop of a script that puts none.
_TOKEN = re.compile(r"[^\s。！？｡]*[。！？｡]++[\"'”’»)」』）]*|[^\s。！？｡]++")
_CLOSERS = "\"'”’»)]}*_」』）"
NUMBER = re.compile(r"\d+(?:[.,]\d+)*+")
_STOPS = tuple(".!?…。！？｡।؟۔")


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ABBREVIATIONS = _listed(
    """approx. bzw. ca. cf. co. corp. dept. dr. e.g. est. etc. fig. frl. ggf. hr. i.e. inc. inkl. jr. ltd. messrs. mio.
    mr. mrd. mrs. ms. prof. sog. sr. st. str. vgl. vol. vs. zzgl."""
)
# These end no sentence before a number: "No. 7", "Art. 3".
_NUMBERED = _listed("abs. art. ch. eq. no. nos. nr. p. para. pp. sec. ziff.")
_ORDINAL = re.compile(r"\d{1,2}\.")
_MONTHS = _listed(
    """januar jänner februar feber märz april mai juni juli august september oktober november dezember jan feb mär apr
    jun jul aug sep sept okt nov dez quartal jahrhundert"""
)
STOP_WORDS = _listed(
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
# Of German, French, Spanish, Italian, Dutch and Portuguese, for texts that do not read as English.
OTHER_STOP_WORDS = _listed(
    """aber alle als am an auch auf aus bei beim bin bis bitte da damit dann das dass dem den denn der des dich die dies
    diese diesem diesen dieser dieses doch dort durch ein eine einem einen einer eines er es etwas euch für haben hat
    hatte ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ist ja jede jeder kann kein keine können mehr mich mir mit
    muss nach nicht noch nun nur ob oder ohne sehr sein seine seiner seit sich sie sind so über um und uns unser unsere
    unter vom von vor war waren was weil wenn werden wie wieder wir wird wo zu zum zur zwischen
    au aux avec ce ces cette dans de des du elle elles en est et été être eux il ils je la le les leur leurs lui mais me
    même mes moi mon ne nos notre nous on ont ou où par pas plus pour qu que qui sa sans se ses son sont sous sur ta te
    tes ton très tu un une vos votre vous
    al algo como con del desde donde el ella ellas ellos entre era es esa ese eso esta este esto están está fue ha hay
    la las le les lo los más mi muy ni no nos o para pero por porque que se ser si sin sobre son su sus también te tiene
    todo un una uno unos y ya yo
    ai alla alle anche che chi ci come cui da dal dalla degli dei del della delle di e era essere gli ha hanno ho i il
    io la le lei loro lui ma mi nei nel nella non o per perché più quando questa questo se si sono su sua sul sulla suo
    tra tu un una uno
    aan al als bij dan dat de deze die dit door een en er had heb hebben heeft het hij hoe hun ik in is je kan maar me
    meer met mijn naar niet nog nu of om onder ons ook op over te tot uit van veel voor waar was wat we wel werd wie
    wij wordt ze zich zij zijn zo zou
    ao aos as até com da das de dela dele do dos e ela elas ele eles em entre era essa esse esta este eu foi há isso já
    mais mas me mesmo meu minha muito na nas nem no nos não o os ou para pela pelo por quando que quem se sem ser seu
    sua são também te tem um uma você à às é"""
)
STEMMED = {
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


class Sentence(NamedTuple):
    """A sentence as it stands in the text, from `start` to before `end`."""

    text: str
    start: int
    end: int

    def quote(self, **more: object) -> dict[str, object]:
        """Return the sentence as part of an answer."""
        return {"text": self.text, "start": self.start, "end": self.end, **more}


class Block(NamedTuple):
    """A part of a text that no sentence crosses, without its mark."""

    start: int
    end: int
    kind: str


def require_size(text: str, most: int) -> None:
    """Raise Refused for a text of more characters than can be read in a second."""
    if len(text) > most:
        raise Refused(
            "too-large",
            f"the text has {len(text):,} characters; at most {most:,} are read",
            "cut it with doc.content.chunk first",
        )


def split_sentences(text: str) -> list[Sentence]:
    """Return the sentences of the running text; a sentence never crosses a paragraph or a list item.

    No Markdown headings, rules, tables and fenced code, no list marks.
    """
    return [s for block in blocks(text) if block.kind in RUNNING for s in sentences_in(text, block)]


def sentences_in(text: str, block: Block) -> Iterator[Sentence]:
    """Yield the sentences of a block."""
    tokens = list(_TOKEN.finditer(text, block.start, block.end))
    first = 0
    for index, token in enumerate(tokens, 1):
        following = tokens[index][0] if index < len(tokens) else ""
        if not following or ends_sentence(token[0], following):
            start, end = tokens[first].start(), token.end()
            yield Sentence(text[start:end], start, end)
            first = index


def ends_whole(sentence: str) -> bool:
    """Return whether it ends with a full stop, or what takes its place."""
    return sentence.rstrip(_CLOSERS).endswith(_STOPS)


def ends_sentence(token: str, following: str) -> bool:
    """Return whether a sentence ends with this token, the following one being the next."""
    bare = token.rstrip(_CLOSERS)
    if not bare.endswith(_STOPS):
        return False
    if not bare.endswith("."):
        return True
    plain = bare.lstrip("\"'“‘«([*_")
    word = plain.lower()
    abbreviated = word in _ABBREVIATIONS or _INITIALS.fullmatch(plain)
    numbered = word in _NUMBERED and following[:1].isdigit()
    return not (abbreviated or numbered or _is_day(word, following)) and not following[:1].islower()


def _is_day(token: str, following: str) -> bool:
    """Return whether both are of a date as German writes it: `3. Mai`."""
    return bool(_ORDINAL.fullmatch(token)) and following.strip(_CLOSERS + ".,;:").lower() in _MONTHS


def blocks(text: str) -> list[Block]:
    """Return the paragraphs, list items, headings, and other parts (tables, fenced code) of a text, in order; no
    rules.
    """
    found: list[Block] = []
    fenced = is_open = False
    start = 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        fence = bare.startswith(("```", "~~~"))
        fenced ^= fence
        mark = None if fenced or fence else _MARK.match(line)
        if mark and _is_day(mark[0].strip(), line[mark.end() :].partition(" ")[0].strip()):
            mark = None
        other = "other" if fenced or fence or bare[:1] == "|" else ""
        kind = other or ("paragraph" if mark is None else "heading" if mark["heading"] else "item")
        if not bare.strip("-=*_ ") or fence:
            is_open = False
        elif mark or not is_open or (found[-1].kind == "other") is not bool(other):
            inner = line[mark.end() :] if mark else line
            found.append(
                Block(start + len(line) - len(inner.lstrip()), start + len(line.rstrip()), kind)
            )
            is_open = kind != "heading"
        else:
            found[-1] = found[-1]._replace(end=start + len(line.rstrip()))
        start += len(line)
    return [block for block in found if block.start < block.end]


def split_words(text: str) -> list[str]:
    """Lower-case words holding a letter, in order."""
    found: list[str] = []
    for token in WORD.findall(text):
        word = token.strip("'’-").casefold()
        if UNSPACED.search(word):
            found.extend(word[i : i + 2] for i in range(len(word) - 1))
        elif any(map(str.isalpha, word)):
            found.append(word)
    return found


def tells(word: str) -> bool:
    """Return whether a word says something by itself: more than a letter, and no stop word."""
    return len(word) > 1 and word.replace("’", "'") not in STOP_WORDS


def reads_english(text: str) -> bool:
    """Return whether every tenth word at least is one that English texts are full of; texts without words do."""
    words = split_words(text)
    return 10 * sum(word.replace("’", "'") in STOP_WORDS for word in words) >= len(words)


def telling(text: str) -> Callable[[str], bool]:
    """Return what asks of a word of this text whether it says something by itself."""
    if reads_english(text):
        return tells
    return lambda word: tells(word) and word not in OTHER_STOP_WORDS


def content_words(text: str) -> list[str]:
    """Return the words of a text that say something by themselves."""
    return [word for word in split_words(text) if tells(word)]


@cache
def stemmer(language: str = "en") -> Callable[[str], str]:
    """Return what cuts a word of a language to its stem. Raise Refused for a language without stemmer."""
    if language not in STEMMED:
        raise Refused(
            "unsupported",
            f"no stemmer for language {language!r:.40}; there is one for: {', '.join(STEMMED)}",
        )
    import snowballstemmer

    stem: Callable[[str], str] = lru_cache(50_000)(
        snowballstemmer.stemmer(STEMMED[language]).stemWord
    )
    return stem


def overlap(one: Set[str], other: Set[str]) -> float:
    """Return the part of the words of the shorter that both have."""
    return len(one & other) / (min(len(one), len(other)) or 1)


def claims_of(sentence: str) -> list[str]:
    """Return the numbers of a sentence, and its capitalised words but the first."""
    names = [token.strip("'’-") for token in WORD.findall(sentence)[1:] if token[:1].isupper()]
    return NUMBER.findall(sentence) + [name for name in names if name.casefold() not in STOP_WORDS]


def claims_in(text: str) -> list[str]:
    """Return the claims of all sentences of a text, each once."""
    return list(dict.fromkeys(claim for s in split_sentences(text) for claim in claims_of(s.text)))


class ClaimSource:
    """A text that is asked whether it has a number or a name."""

    def __init__(self, text: str) -> None:
        self._parts = {*NUMBER.findall(text), *split_words(text)}

    def holds(self, claim: str) -> bool:
        """Return whether the text has the number, or all words of the name."""
        return claim in self._parts or self._parts.issuperset(split_words(claim) or [""])
