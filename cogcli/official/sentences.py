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


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ABBREVIATIONS = _word_set(
    """approx. bzw. ca. cf. co. corp. dept. dr. e.g. est. etc. fig. frl. ggf. hr. i.e. inc. inkl. jr. ltd. messrs. mio.
    mr. mrd. mrs. ms. prof. sog. sr. st. str. vgl. vol. vs. zzgl."""
)
# These end no sentence before a number: "No. 7", "Art. 3".
_NUMBERED = _word_set("abs. art. ch. eq. no. nos. nr. p. para. pp. sec. ziff.")
_ORDINAL = re.compile(r"\d{1,2}\.")
_MONTHS = _word_set(
    """januar jänner februar feber märz april mai juni juli august september oktober november dezember jan feb mär apr
    jun jul aug sep sept okt nov dez quartal jahrhundert"""
)
STOP_WORDS = _word_set(
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
OTHER_STOP_WORDS = _word_set(
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
    """A sentence verbatim, with its place from `start` to before `end`."""

    text: str
    start: int
    end: int

    def quote(self, **members: object) -> dict[str, object]:
        """Return the sentence with its place as a member of an answer."""
        return {"text": self.text, "start": self.start, "end": self.end, **members}


class Block(NamedTuple):
    """A part of a text that no sentence crosses, without its Markdown mark."""

    start: int
    end: int
    kind: str


def require_size(text: str, max_characters: int) -> None:
    """Raise Refused for a text of more than `max_characters` characters."""
    if len(text) > max_characters:
        raise Refused(
            "too-large",
            f"the text has {len(text):,} characters; at most {max_characters:,} are read",
            "cut it with doc.content.chunk first",
        )


def split_sentences(text: str) -> list[Sentence]:
    """Return the sentences of the running text. A sentence never crosses a paragraph or a list
    item.

    Markdown headings, rules, tables, fenced code and list marks are left out.
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


def is_complete_sentence(sentence: str) -> bool:
    """Return whether a text ends with a full stop, or another mark that ends a sentence."""
    return sentence.rstrip(_CLOSERS).endswith(_STOPS)


def ends_sentence(token: str, following: str) -> bool:
    """Return whether a sentence ends with this token. `following` is the token after it."""
    without_closers = token.rstrip(_CLOSERS)
    if not without_closers.endswith(_STOPS):
        return False
    if not without_closers.endswith("."):
        return True
    word_as_written = without_closers.lstrip("\"'“‘«([*_")
    word = word_as_written.lower()
    is_abbreviation = word in _ABBREVIATIONS or _INITIALS.fullmatch(word_as_written)
    precedes_number = word in _NUMBERED and following[:1].isdigit()
    return (
        not (is_abbreviation or precedes_number or _is_day(word, following))
        and not following[:1].islower()
    )


def _is_day(token: str, following: str) -> bool:
    """Return whether two tokens are a German date without year: `3. Mai`."""
    return bool(_ORDINAL.fullmatch(token)) and following.strip(_CLOSERS + ".,;:").lower() in _MONTHS


def blocks(text: str) -> list[Block]:
    """Return the paragraphs, list items, headings and other parts (tables, fenced code) of a text,
    in order.

    Rules are left out.
    """
    parsed: list[Block] = []
    in_fence = is_open = False
    start = 0
    for line in text.splitlines(keepends=True):
        content = line.strip()
        fence = content.startswith(("```", "~~~"))
        in_fence ^= fence
        mark = None if in_fence or fence else _MARK.match(line)
        if mark and _is_day(mark[0].strip(), line[mark.end() :].partition(" ")[0].strip()):
            mark = None
        other_kind = "other" if in_fence or fence or content[:1] == "|" else ""
        kind = other_kind or (
            "paragraph" if mark is None else "heading" if mark["heading"] else "item"
        )
        if not content.strip("-=*_ ") or fence:
            is_open = False
        elif mark or not is_open or (parsed[-1].kind == "other") is not bool(other_kind):
            inner = line[mark.end() :] if mark else line
            parsed.append(
                Block(start + len(line) - len(inner.lstrip()), start + len(line.rstrip()), kind)
            )
            is_open = kind != "heading"
        else:
            parsed[-1] = parsed[-1]._replace(end=start + len(line.rstrip()))
        start += len(line)
    return [block for block in parsed if block.start < block.end]


def split_words(text: str) -> list[str]:
    """Return the lower-case words that contain a letter, in order.

    In scripts without blanks between words, each pair of characters counts as a word.
    """
    words: list[str] = []
    for token in WORD.findall(text):
        word = token.strip("'’-").casefold()
        if UNSPACED.search(word):
            words.extend(word[i : i + 2] for i in range(len(word) - 1))
        elif any(map(str.isalpha, word)):
            words.append(word)
    return words


def is_content_word(word: str) -> bool:
    """Return whether a word has more than one letter and is not a stop word."""
    return len(word) > 1 and word.replace("’", "'") not in STOP_WORDS


def reads_english(text: str) -> bool:
    """Return whether at least a tenth of the words are English stop words. True for a text without
    words.
    """
    words = split_words(text)
    return 10 * sum(word.replace("’", "'") in STOP_WORDS for word in words) >= len(words)


def content_word_test(text: str) -> Callable[[str], bool]:
    """Return a predicate for the content words of this text. Outside English, further stop words
    count.
    """
    if reads_english(text):
        return is_content_word
    return lambda word: is_content_word(word) and word not in OTHER_STOP_WORDS


def content_words(text: str) -> list[str]:
    """Return the content words of a text: no stop words, no single letters."""
    return [word for word in split_words(text) if is_content_word(word)]


@cache
def stemmer(language: str = "en") -> Callable[[str], str]:
    """Return a function that reduces a word of a language to its stem. Raise Refused for an
    unsupported language.
    """
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


def overlap(a: Set[str], b: Set[str]) -> float:
    """Return the share of the smaller set that both sets contain, from 0 to 1."""
    return len(a & b) / (min(len(a), len(b)) or 1)


def claims_of(sentence: str) -> list[str]:
    """Return the numbers of a sentence, and its capitalized words except the first."""
    names = [token.strip("'’-") for token in WORD.findall(sentence)[1:] if token[:1].isupper()]
    return NUMBER.findall(sentence) + [name for name in names if name.casefold() not in STOP_WORDS]


def claims_in(text: str) -> list[str]:
    """Return the claims of all sentences of a text, without repetition."""
    return list(dict.fromkeys(claim for s in split_sentences(text) for claim in claims_of(s.text)))


class ClaimSource:
    """The numbers and words of a text, to look claims up."""

    def __init__(self, text: str) -> None:
        self._parts = {*NUMBER.findall(text), *split_words(text)}

    def holds(self, claim: str) -> bool:
        """Return whether the text contains the number, or all words of the name."""
        return claim in self._parts or self._parts.issuperset(split_words(claim) or [""])
