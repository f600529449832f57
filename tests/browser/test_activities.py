"""Every kind of activity in the browser: solved wrongly and rightly, by mouse and by keyboard; and what is kept."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from activity_book import EXAMPLES_IN_ORDER, KINDS, activity_book
from book_paths import ROOT
from browsing import Tab, serve

# The tiny book looks like the real one.
SETTINGS = f"""
html_theme = "sphinx_book_theme"
html_context = {{"default_mode": "auto"}}
html_theme_options = {{"navbar_persistent": [], "use_download_button": False, "use_fullscreen_button": False}}
html_sidebars = {{"**": ["book-title.html", "search-button-field.html", "sbt-sidebar-nav.html"]}}
html_favicon = "{ROOT}/book/_static/favicon.svg"
html_static_path = ["{ROOT}/book/_static"]
html_css_files = ["book.css"]
templates_path = ["{ROOT}/book/_templates"]
"""
PATH = "kinds.html"
KEY = f"bookkit:/{PATH}"


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Iterator[str]:
    """The address of the tiny book, in the theme of the real one."""
    project = activity_book(tmp_path_factory.mktemp("site"), settings=SETTINGS)
    assert project.build("html") == (0, "")
    with serve(project.root / "_build/html") as address:
        yield address


@pytest.fixture
def tab(browser, site) -> Iterator[Tab]:
    """A browser that has never seen the book. At the end, nothing may have been said to the console."""
    tab = Tab(browser, site)
    tab.visit(PATH)
    yield tab
    complaints = tab.complaints
    tab.page.context.close()
    assert complaints == []


START_BEFORE = """element => {
    if (element === document.activeElement) return;
    const start = element.closest("section.activity, .activity-progress");
    start.tabIndex = -1;
    start.focus();
}"""


class Mouse:
    """A reader who points and clicks, and types where there is a field."""

    def __init__(self, page: Page):
        self.page = page

    def press(self, button: Locator) -> None:
        button.click(force=button.get_attribute("aria-disabled") == "true")  # it says why it does nothing

    def choose_radio(self, radios: Locator, i: int) -> None:
        radios.nth(i).click()

    def choose(self, choices: Locator, value: str) -> None:
        choices.select_option(value)  # the list itself is the browser's own

    def write(self, field: Locator, text: str) -> None:
        field.click()
        field.fill(text)
        field.blur()


class Keyboard:
    """A reader without a mouse."""

    def __init__(self, page: Page):
        self.page = page

    def reach(self, target: Locator) -> None:
        """From the beginning of the activity: that the page as a whole can be walked through is a test of its own."""
        target.evaluate(START_BEFORE)
        for _ in range(30):
            if target.evaluate("element => element === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        pytest.fail(f"the tabulator never reaches {target}")

    def press(self, button: Locator) -> None:
        self.reach(button)
        self.page.keyboard.press("Space" if button.get_attribute("type") == "checkbox" else "Enter")

    def choose_radio(self, radios: Locator, i: int) -> None:
        checked = [j for j, radio in enumerate(radios.all()) if radio.is_checked()] or [0]
        self.reach(radios.nth(checked[0]))
        self.page.keyboard.press("Space")
        for _ in range(abs(i - checked[0])):
            self.page.keyboard.press("ArrowDown" if i > checked[0] else "ArrowUp")

    def choose(self, choices: Locator, value: str) -> None:
        self.reach(choices)
        self.page.keyboard.press("Home")
        while choices.input_value() != value:
            self.page.keyboard.press("ArrowDown")

    def write(self, field: Locator, text: str) -> None:
        self.reach(field)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Tab")


@pytest.fixture(params=[Mouse, Keyboard])
def hand(request, tab) -> Mouse | Keyboard:
    return request.param(tab.page)


@pytest.fixture(scope="module")
def shared(browser, site) -> Tab:
    """For tests that change nothing on the page."""
    tab = Tab(browser, site)
    tab.visit(PATH)
    return tab


class Section:
    """One activity on the page."""

    def __init__(self, page: Page, name: str):
        self.page, self.root = page, page.locator(f"#{name}")

    def find(self, selector: str) -> Locator:
        return self.root.locator(selector)

    def button(self, action: str, i: int = 0) -> Locator:
        return self.find(f"[data-action={action}]").nth(i)

    def summary(self, words: str) -> Locator:
        return self.find(
            "summary",
        ).filter(has_text=re.compile(f"^{words}$"))

    @property
    def status(self) -> str:
        return self.find(".activity-status").inner_text()

    @property
    def done(self) -> bool:
        return self.root.get_attribute("data-done") == "true"

    def shows(self, words: str) -> bool:
        """Whether the reader can see these words now."""
        return self.page.evaluate(
            "([section, words]) => section.innerText.includes(words)", [self.root.element_handle(), words]
        )

    def reload(self) -> None:
        self.page.reload()


# -- Every kind, solved ----------------------------------------------------------------------------


def test_check(tab, hand):
    section = Section(tab.page, "check--which-one")
    hand.press(section.button("check"))
    assert section.status == "Choose an option first."
    hand.choose_radio(section.find("input"), 0)
    hand.press(section.button("check"))
    assert section.status == "✗ Not this one. Read why, and choose again."
    assert section.shows("Hidden nineteen.")
    assert not section.shows("Hidden twenty.")
    assert not section.done
    hand.choose_radio(section.find("input"), 1)
    hand.press(section.button("check"))
    assert section.status == "✓ Right."
    assert section.shows("Hidden twenty.")
    assert section.done
    section.reload()
    assert section.find("input").nth(1).is_checked()
    assert section.shows("Hidden twenty.")
    assert section.done


def test_eliminate(tab, hand):
    section = Section(tab.page, "eliminate--which-survives")
    assert not section.shows("Hidden")
    hand.press(section.button("strike", 1))
    assert section.status == "Not this one: nothing is wrong with it. Look at the others."
    hand.press(section.button("strike", 0))
    assert section.status == "✗ Struck, for the reason below it. Still wrong: 1."
    assert section.button("strike", 0).inner_text() == "✗ Struck"
    assert section.shows("Hidden fifteen.")
    assert not section.done
    hand.press(section.button("strike", 2))
    assert section.status == "✓ All wrong options are struck. One survives."
    assert section.shows("Hidden sixteen.")
    assert section.done
    section.reload()
    assert section.shows("Hidden seventeen.")
    assert section.done


def test_sort(tab, hand):
    section = Section(tab.page, "sort--fast-or-slow")
    hand.press(section.button("check"))
    assert section.status == "Choose a place for at least one item first."
    for i in range(3):
        hand.choose(section.find("select").nth(i), "fast")
    hand.press(section.button("check"))
    assert section.status == "1 of 3 right."
    assert section.find(".activity-mark").all_inner_texts() == ["✓ right", "✗ not there", "✗ not there"]
    assert section.shows("Hidden nine.")
    assert not section.shows("Hidden ten.")
    assert not section.done
    for i in (1, 2):
        hand.choose(section.find("select").nth(i), "slow")
    hand.press(section.button("check"))
    assert section.status == "3 of 3 right."
    assert section.shows("Hidden ten.")
    section.reload()
    assert section.find("select").nth(2).input_value() == "slow"
    assert section.done


def test_fill_table(tab, hand):
    section = Section(tab.page, "fill-table--the-sizes")
    fields = section.find("input")
    hand.write(fields.nth(0), "1 235")
    assert section.find(".activity-mark").first.inner_text() == "✗ not yet"
    assert section.status == "0 of 3 cells right."
    hand.write(fields.nth(0), "1 234")
    hand.write(fields.nth(1), "28994")
    hand.press(section.button("check"))
    assert section.find(".activity-mark").all_inner_texts() == ["✓ right", "✓ right", ""]
    assert section.status == "2 of 3 cells right."
    assert not section.done
    hand.write(fields.nth(2), "70,000")
    assert section.status == "3 of 3 cells right."
    assert section.done
    section.reload()
    assert fields.nth(1).input_value() == "28994"
    assert section.done


def test_fill_table_by_lists(tab, hand):
    section = Section(tab.page, "fill-table--the-words")
    hand.choose(section.find("select").nth(0), "<base>")
    assert section.find(".activity-mark").first.inner_text() == "✗ not yet"
    hand.choose(section.find("select").nth(0), "fast")
    hand.choose(section.find("select").nth(1), "<base>")
    assert section.status == "2 of 2 cells right."
    section.reload()
    assert [choices.input_value() for choices in section.find("select").all()] == ["fast", "<base>"]
    assert section.done


def test_reveal(tab, hand):
    section = Section(tab.page, "fill-table--the-sizes")
    hand.press(section.button("reveal-one", 1))
    assert [field.input_value() for field in section.find("input").all()] == ["", "28,994", ""]
    assert section.status == "1 of 3 cells right."
    hand.press(section.button("reveal"))
    assert [field.input_value() for field in section.find("input").all()] == ["1,234", "28,994", "70,000"]
    assert section.status == "3 of 3 cells right."


@pytest.mark.parametrize(
    ("given", "answer", "same"),
    [
        ("1234", "1,234", True),
        ("1'234", "1,234", True),
        (" SAME ", "same", True),
        ("-0.0285", "−0.0285", True),
        ("0.256", "0.2559", True),
        ("0.26", "0.2559", True),
        (".26", "0.2559", True),
        ("0.3", "0.2559", False),  # one digit says too little
        ("0.25", "0.2559", False),
        ("0.2555", "0.2559", False),
        ("0.286", "0.2855", True),  # a half may be rounded up
        ("0.5", "0.5000", True),
        ("29,000", "28,994", False),  # counts are exact
        ("28,994.0", "28,994", True),
        ("12,34", "1,234", False),
        ("0." + "0" * 300 + "12", "0.2559", False),
        ("1" * 20000 + "x", "1", False),
        ("", "0.2559", False),
        ("true", "True", True),
    ],
)
def test_what_counts_as_the_same_answer(shared, given, answer, same):
    assert shared.page.evaluate("([given, answer]) => sameAnswer(given, answer)", [given, answer]) is same


def test_step(tab, hand):
    section = Section(tab.page, "step--row-by-row")
    rows = section.find("tbody tr")
    assert [row.is_visible() for row in rows.all()] == [True, False]
    assert section.shows("Hidden seven.")
    assert not section.shows("Hidden eight.")
    hand.press(section.button("back"))
    assert section.status == "This is the first row."
    hand.press(section.button("forward"))
    assert section.status == "Row 2 of 2."
    assert [row.is_visible() for row in rows.all()] == [True, True]
    assert section.shows("Hidden eight.")
    assert not section.shows("Hidden seven.")
    assert section.done
    hand.press(section.button("forward"))
    assert section.status == "This is the last row."
    section.reload()
    assert section.shows("Hidden eight.")
    assert section.done


def test_step_with_arrow_keys(tab):
    section = Section(tab.page, "step--row-by-row")
    section.button("back").focus()
    tab.page.keyboard.press("ArrowRight")
    assert section.status == "Row 2 of 2."
    tab.page.keyboard.press("ArrowLeft")
    assert section.status == "Row 1 of 2."
    assert section.button("back").evaluate("button => button === document.activeElement")


def test_predict(tab, hand):
    section = Section(tab.page, "predict--how-much")
    assert section.summary("Answer").is_hidden()
    hand.press(section.button("commit"))
    assert section.status == "Write down a guess first: a wrong one teaches more than none."
    assert section.summary("Answer").is_hidden()
    hand.write(section.find("input"), "<b>a half</b>")
    hand.press(section.button("commit"))
    assert section.status == "Your guess: <b>a half</b>"
    assert section.shows("Computed in this book: 0.7441.")
    assert section.summary("Answer").evaluate("summary => summary === document.activeElement")
    assert section.done
    section.reload()
    assert section.find("input").input_value() == "<b>a half</b>"
    assert section.shows("Hidden five.")
    assert section.done


def test_predict_with_enter(tab):
    section = Section(tab.page, "predict--how-much")
    section.find("input").fill("0.7")
    section.find("input").press("Enter")
    assert section.status == "Your guess: 0.7"
    assert tab.page.url.endswith(PATH)  # nothing was sent


def test_discuss(tab, hand):
    section = Section(tab.page, "discuss--is-it-half-of-n")
    hand.press(section.summary("Hint"))
    assert section.shows("Hidden one: hint of discuss.")
    hand.write(section.find("textarea"), "My notes: <i>x</i>")
    assert not section.done
    hand.press(section.summary("Answer"))
    assert section.shows("Hidden two")
    assert section.done
    section.reload()
    assert section.find("textarea").input_value() == "My notes: <i>x</i>"
    assert section.done


def test_what_a_reader_writes_is_kept_to_the_last_letter_that_fits(tab):
    for name in "discuss--is-it-half-of-n", "predict--how-much":
        section = Section(tab.page, name)
        field = section.find("textarea, input")
        field.click()
        tab.page.evaluate("text => document.execCommand('insertText', false, text)", "a" * 20001)
        if name.startswith("predict"):
            section.button("commit").click()
        written = field.input_value()
        section.reload()
        assert (len(written), field.input_value() == written) == (20000, True)


def test_a_long_word_makes_no_page_wider(tab):
    tab.page.set_viewport_size({"width": 320, "height": 700})
    section = Section(tab.page, "predict--how-much")
    section.find("input").fill("a" * 300)
    section.button("commit").click()
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 320


def test_trap(tab, hand):
    section = Section(tab.page, "trap--it-is-free")
    for words, hidden in ("What breaks", "twenty-one"), ("The fix", "twenty-two"), ("What proves it", "twenty-three"):
        assert not section.done
        hand.press(section.summary(words))
        assert section.shows(f"Hidden {hidden}.")
    assert section.done
    section.reload()
    assert section.done


def test_draw(tab, hand):
    section = Section(tab.page, "draw--the-map")
    hand.press(section.summary("A model drawing"))
    assert section.find("figure").is_visible()
    hand.press(section.summary("Arrows that should be there"))
    hand.press(section.find("input").nth(0))
    assert section.status == "1 of 2 arrows ticked."
    assert not section.done
    hand.press(section.find("input").nth(1))
    assert section.status == "2 of 2 arrows ticked."
    assert section.done
    section.reload()
    assert [box.is_checked() for box in section.find("input").all()] == [True, True]
    assert section.done


def test_exercise(tab, hand):
    section = Section(tab.page, "exercise--a-function")
    assert section.summary("Hint 2 of 2").is_hidden()
    hand.press(section.summary("Hint 1 of 2: the split"))
    assert section.shows("Hidden twenty-seven.")
    assert section.summary("Hint 2 of 2").is_visible()
    assert not section.shows("The solution stays.")
    hand.press(section.summary("A solution"))
    assert section.shows("The solution stays.")
    assert not section.done
    hand.press(section.find("input"))
    assert section.done
    section.reload()
    assert section.summary("Hint 2 of 2").is_visible()
    assert section.find("input").is_checked()
    assert section.done


# -- Progress, and what is kept ---------------------------------------------------------------------


# Each activity to its end, at once: that readers can do it is tested above.
SOLVE = """() => {
    const all = (selector) => [...document.querySelectorAll(`section.activity ${selector}`)];
    all("summary").forEach((summary) => (summary.parentElement.open = true));
    all("[type=checkbox]:not(:checked)").forEach((box) => box.click());
    all("[type=radio][data-right]").forEach((radio) => (radio.checked = true));
    all("select").forEach((choices) => (choices.value = choices.dataset.answer));
    all(".activity-guess input:not([readonly])").forEach((field) => (field.value = "0.7"));
    for (const action of ["commit", "reveal", "check", "forward", "strike"])
        all(`[data-action=${action}]:not([data-action=strike][data-right])`).forEach((button) => button.click());
}"""


def solve_everything(page: Page) -> None:
    page.evaluate(SOLVE)
    expect_done(page, len(KINDS))


def expect_done(page: Page, done: int, total: int = len(KINDS)) -> None:
    expect(page.locator(".activity-count")).to_have_text(f"Activities done on this page: {done} of {total}")


def test_progress_counts_what_is_done(tab):
    expect_done(tab.page, 0)
    solve_everything(tab.page)
    tab.page.reload()
    expect_done(tab.page, len(KINDS))


def test_each_page_has_a_memory_of_its_own(tab):
    solve_everything(tab.page)
    tab.visit("part/more.html")
    expect_done(tab.page, 0, 1)


@pytest.mark.parametrize("sure", [True, False])
def test_answers_can_be_forgotten(tab, hand, sure):
    solve_everything(tab.page)
    tab.page.once("dialog", lambda dialog: dialog.accept() if sure else dialog.dismiss())
    hand.press(tab.page.locator("[data-action=clear]"))
    tab.page.wait_for_load_state()
    done = 0 if sure else len(KINDS)
    expect_done(tab.page, done)
    assert (tab.page.evaluate("key => localStorage.getItem(key)", KEY) is None) == sure
    if sure:
        assert not tab.page.locator("input:checked").count()
        assert [field.input_value() for field in tab.page.locator("section.activity select").all()] == [""] * 7


def test_without_scripts_everything_can_be_read(browser, site):
    tab = Tab(browser, site, java_script_enabled=False)
    tab.visit(PATH)
    page = tab.page
    assert not [element for element in page.locator(".needs-script").all() if element.is_visible()]
    assert not page.locator("[hidden]").count()
    for summary in page.locator("section.activity summary").all():
        summary.click()
    text = page.locator("article").first.inner_text()
    hidden = set(re.findall(r"Hidden [a-z-]+\b", "".join(KINDS.values())))
    assert [words for words in hidden if words not in text] == []
    assert text.count("28,994") == 3  # in each filled table, and in the table that asks for another cell
    assert tab.complaints == []
    page.context.close()


# -- What was stored is not trusted -----------------------------------------------------------------

MARKUP = "<img src=x onerror=alert(1)>"
FIELDS = (
    "choice",
    "struck",
    "buckets",
    "cells",
    "row",
    "guess",
    "notes",
    "read",
    "opened",
    "ticked",
    "hints",
    "passes",
)


def everywhere(value: object) -> str:
    """This value in place of everything that any kind keeps."""
    return json.dumps({name: dict.fromkeys(FIELDS, value) for name in EXAMPLES_IN_ORDER})


HOSTILE = {
    "no JSON": "{broken",
    "nothing": "",
    "null": "null",
    "a number": "5",
    "a text": json.dumps(MARKUP),
    "a list": json.dumps([MARKUP]),
    "markup for activities": json.dumps(dict.fromkeys(EXAMPLES_IN_ORDER, MARKUP)),
    "null for activities": json.dumps(dict.fromkeys(EXAMPLES_IN_ORDER)),
    "null for fields": everywhere(None),
    "numbers": everywhere(-1.5),
    "a large number": everywhere(1e300),
    "objects": everywhere({"length": 3, "0": MARKUP}),
    "lists of objects": everywhere([{"toString": MARKUP}]),
    "a long text": everywhere("9" * 30_000),
    "a long list": everywhere([MARKUP] * 1000),
    "a prototype": '{"__proto__": {"choice": "1", "read": true}, "constructor": {"prototype": {"read": true}}}',
    "prototypes of activities": json.dumps({name: {} for name in EXAMPLES_IN_ORDER}).replace(
        "{}", '{"__proto__": {"choice": "1", "read": true, "passes": true, "guess": "x"}}'
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_state_is_ignored(tab, name):
    tab.page.evaluate("([key, value]) => localStorage.setItem(key, value)", [KEY, HOSTILE[name]])
    tab.page.reload()
    expect_done(tab.page, 0)
    assert not tab.page.locator("img[src=x]").count()
    assert tab.page.evaluate("({}).read === undefined && ({}).choice === undefined")
    solve_everything(tab.page)


@pytest.mark.parametrize("value", [MARKUP, [MARKUP] * 3, [f"0.{'0' * 300}12"] * 3, 10**15, True], ids=type)
def test_state_of_the_right_type_is_text_and_never_markup(tab, value):
    tab.page.evaluate("([key, value]) => localStorage.setItem(key, value)", [KEY, everywhere(value)])
    tab.page.reload()
    assert not tab.page.locator("img[src=x]").count()
    solve_everything(tab.page)


def test_a_browser_that_keeps_nothing(browser, site):
    tab = Tab(browser, site)
    tab.page.add_init_script(
        "for (const name of ['getItem', 'setItem', 'removeItem'])"
        " Storage.prototype[name] = () => { throw new DOMException('no', 'SecurityError'); };"
    )
    tab.visit(PATH)
    solve_everything(tab.page)
    tab.page.context.close()


def test_a_kind_whose_script_is_missing_stays_as_it_is_without_scripts(browser, site):
    tab = Tab(browser, site)
    tab.page.route(re.compile("choice.js"), lambda route: route.fulfill(content_type="text/javascript", body=""))
    tab.visit(PATH)
    expect_done(tab.page, 0, len(KINDS) - 2)
    section = Section(tab.page, "check--which-one")
    assert section.button("check").is_hidden()
    section.summary("Why it is right").click()
    assert section.shows("Hidden twenty.")
    assert tab.complaints == []
    tab.page.context.close()


# -- For every reader -------------------------------------------------------------------------------

OPEN = """() => document.querySelectorAll("section.activity details").forEach((details) => (details.open = true))"""
FIND_SMALL = """() => {
    const places = [...document.querySelectorAll("section.activity, .activity-progress")];
    const controls = places.flatMap((place) => [...place.querySelectorAll("button, input, select, textarea, summary")]);
    return controls.filter((control) => control.checkVisibility()).flatMap((control) => {
        const {width, height} = control.getBoundingClientRect();
        return Math.min(width, height) < 24 ? [`${control.outerHTML}: ${width} x ${height}`] : [];
    });
}"""
FIND_MISSED = """() => {
    const controls = [...document.querySelectorAll("section.activity :is(button, input, select, summary, textarea)")];
    const later = "[type=radio]:not([value='0'])";
    const stops = controls.filter((control) => control.checkVisibility() && !control.matches(later));
    const steps = stops.map((control) => window.walked.indexOf(control));
    return stops.filter((_, i) => steps[i] < 0 || steps[i] < (steps[i - 1] ?? 0)).map((control) => control.outerHTML);
}"""
MODES = {
    "light": {"color_scheme": "light", "viewport": {"width": 1300, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1300, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 320, "height": 800}, "is_mobile": True},
}


@pytest.mark.parametrize("mode", MODES)
def test_axe_finds_no_barrier_before_and_after(browser, site, mode):
    tab = Tab(browser, site, **MODES[mode])
    tab.visit(PATH)
    assert tab.barriers() == []
    solve_everything(tab.page)
    assert tab.barriers() == []
    assert tab.overflow(320) == 0
    tab.page.context.close()


@pytest.mark.parametrize("mode", MODES)
def test_what_is_clicked_is_at_least_24_pixels_high_and_wide(browser, site, mode):
    tab = Tab(browser, site, **MODES[mode])
    tab.visit(PATH)
    tab.page.evaluate(OPEN)
    assert tab.page.evaluate(FIND_SMALL) == []
    tab.page.context.close()


def test_the_tabulator_walks_through_all_controls_in_their_order(tab):
    """A group of radio buttons is one stop."""
    tab.page.evaluate(OPEN)
    tab.page.evaluate(
        "() => { window.walked = []; addEventListener('focusin', (event) => walked.push(event.target)); }"
    )
    for _ in range(200):
        tab.page.keyboard.press("Tab")
    assert tab.page.evaluate(FIND_MISSED) == []
