"""The page in a real browser: what a reader clicks, points at and reads."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

from deepmf import factorize
from deepmf.data.layout import Layout
from deepmf.fitting.history import History
from deepmf.report import Ranking, write_report
from deepmf.runs.run import Run
from deepmf.unmixing import mixture

By = pytest.importorskip("selenium.webdriver.common.by", reason="selenium is not installed").By
EVIL = '</script><img src=x onerror="document.title=1"> \u2028 &'


class Page:
    """A report opened in the browser."""

    def __init__(self, chrome, path):
        self.chrome = chrome
        chrome.get_log("browser")
        chrome.get_log("performance")
        chrome.get(path.as_uri())
        self.run("document.documentElement.style.scrollBehavior = 'auto'")

    def run(self, script, *arguments):
        return self.chrome.execute_script(script, *arguments)

    def all(self, selector):
        return self.chrome.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        found = self.all(selector)
        assert found, f"nothing on the page is {selector}"
        return found[0]

    def text(self, selector):
        return self.one(selector).get_property("textContent")

    def texts(self, selector):
        return [found.get_property("textContent") for found in self.all(selector)]

    def node(self, layer, k):
        return self.one(f'[data-node="{layer}/{k}"]')

    def click(self, found):
        """A real click in its middle, which fails where something lies above it."""
        self.run("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", found)
        self.actions().move_to_element(found).click().perform()

    def actions(self):
        from selenium.webdriver.common.action_chains import ActionChains

        return ActionChains(self.chrome, duration=20)

    def press(self, found, *keys):
        self.run("arguments[0].focus()", found)
        self.actions().send_keys(*keys).perform()

    def shot(self, k):
        """Pixels of the k-th map as the browser holds them."""
        url = self.run(
            "return document.querySelectorAll('canvas.map')[arguments[0]].toDataURL()", k
        )
        return b64decode(url.split(",")[1])

    def check_quiet(self):
        """No message on the console, and nothing asked of any network."""
        assert self.chrome.get_log("browser") == []
        events = [json.loads(e["message"])["message"] for e in self.chrome.get_log("performance")]
        sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
        # the browser's own first tab asks for pages of its own
        asked = [p["request"]["url"] for p in sent if not p["documentURL"].startswith("chrome")]
        assert asked
        assert [url for url in asked if not url.startswith(("file://", "data:"))] == []


@pytest.fixture
def opened(chrome, tmp_path):
    """Writes a report, opens it, and checks at the end that it was quiet."""
    pages = []

    def show(*runs, **options):
        pages.append(Page(chrome, write_report(tmp_path / f"{len(pages)}.html", runs, **options)))
        return pages[-1]

    yield show
    pages[-1].check_quiet()


def number(text):
    return float(text.replace("−", "-").rstrip(" %"))


# --- one run ------------------------------------------------------------------------------------


def test_header(opened, scene):
    run = replace(scene(), notes=["Not yet converged."])
    page = opened(run, title="A village")
    assert page.text("h1") == "A village"
    assert page.text("#summary").startswith("30 bands × 1280 pixels factored into 6 > 4 > 2")
    tiles = dict(zip(page.texts(".tile-what"), page.texts(".tile-value")))
    error = 100 * np.sqrt(run.f.history.data_errors[-1, 2])
    assert number(tiles["relative error, layer 3"]) == pytest.approx(error, rel=5e-3)
    assert tiles["sweeps"] == "5"
    assert "mean MRSA, layer 1" in tiles
    assert page.texts("#notes p") == ["Not yet converged."]


def test_graph_shows_links_of_ten_percent_and_more(opened, scene):
    run = scene()
    page = opened(run)
    assert len(page.all(".node")) == 12
    ends = ("data-from", "data-to")
    drawn = {tuple(link.get_attribute(end) for end in ends) for link in page.all(".link")}
    shares = {layer: run.f.links(layer) for layer in (2, 3)}
    wanted = {
        (f"{layer - 1}/{j}", f"{layer}/{i}")
        for layer, S in shares.items()
        for i, j in np.argwhere(np.round(S, 4) >= 0.1)
    }
    assert drawn == wanted
    thick = page.one(".link")
    (_, j), (layer, i) = (thick.get_attribute(end).split("/") for end in ends)
    share = shares[int(layer)][int(i), int(j)]
    assert float(thick.get_attribute("stroke-width")) == pytest.approx(16 * share, abs=0.01)


def test_a_click_lights_up_the_relatives_and_fills_the_panel(opened, scene):
    run = scene()
    page = opened(run)
    first = page.text("#details h3")
    assert not page.all(".lit")
    page.click(page.node(2, 1))
    shares, above = run.f.links(2)[1], run.f.links(3)[:, 1]
    kin = {f"1/{j}" for j in np.flatnonzero(shares >= 0.1)} | {"2/1"}
    kin |= {f"3/{i}" for i in np.flatnonzero(above >= 0.1)}
    assert page.all(".lit")
    assert {node.get_attribute("data-node") for node in page.all(".node.near")} == kin
    assert page.one(".node.chosen").get_attribute("data-node") == "2/1"
    for link in page.all(".link.near"):
        assert "2/1" in (link.get_attribute("data-from"), link.get_attribute("data-to"))
    assert page.text("#details h3") == run.names[1][1] != first
    assert page.text("#details .kicker") == "Layer 2 · component 2 of 4"
    order = run.scores[2].order.tolist()
    assert number(page.text("#details .score b")) == pytest.approx(
        run.scores[2].distances[order.index(1)], rel=5e-3
    )
    made = sorted((round(100 * s) for s in shares if s >= 0.1), reverse=True)
    found = [int(text.rstrip(" %")) for text in page.texts(".kin:first-child .chip b")]
    assert found == made
    written = sorted(int(text.rstrip("%")) for text in page.texts(".share.near"))
    assert written == sorted(round(100 * s) for s in [*shares, *above] if s >= 0.1)
    # the panel's chips choose in their turn
    chip = page.one(".chip")
    name = chip.find_element(By.CSS_SELECTOR, ".chip-name").text
    page.click(chip)
    assert page.text("#details h3") == name
    page.press(page.one(".node.chosen"), "\ue00c")  # Escape
    assert not page.all(".lit")


def test_the_graph_by_keyboard(opened, scene):
    page = opened(scene())
    order = page.run(
        "return [...document.querySelectorAll('[data-node^=\"1/\"]')].map((n) => n.dataset.node)"
    )
    assert page.one(".node[tabindex='0']").get_attribute("data-node") == order[0]
    page.press(page.one(".node[tabindex='0']"), "\ue014")  # right
    here = "return document.activeElement.dataset.node"
    assert page.run(here) == order[1]
    page.actions().send_keys("\ue015").perform()  # down
    assert page.run(here).startswith("2/")
    focused = page.run(here)
    page.actions().send_keys(" ").perform()
    assert page.one(".node.chosen").get_attribute("data-node") == focused
    assert "made of" in page.one(".node.chosen").get_attribute("aria-label")


def test_pointing_at_a_map_reads_every_component(opened, scene):
    run = scene()
    page = opened(run)
    canvas = page.all("canvas.map")[1]
    page.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    before = [page.shot(k) for k in range(8)]
    page.actions().move_to_element_with_offset(canvas, 30, -20).perform()
    place = page.text(".readout .place")
    row, col = (int(part.split()[1]) for part in place.split(", "))
    box = canvas.rect
    assert row == int((box["height"] / 2 - 20) / box["height"] * 32)
    assert col == int((box["width"] / 2 + 30) / box["width"] * 40)
    codes = mixture(run.f.basis(1), run.f.codes(1)).fractions.reshape(6, 32, 40)
    shown = dict(zip(page.texts(".readout .bar-name"), page.texts(".readout .bar-value")))
    for k, name in enumerate(run.names[0]):
        step = np.ptp(codes[k]) / 254
        assert number(shown[name]) == pytest.approx(codes[k, row, col], abs=step + 5e-3)
    left = run.residual.reshape(32, 40)
    assert number(page.text(".readout .residual").split()[1]) == pytest.approx(
        100 * left[row, col], abs=100 * np.ptp(left) / 254, rel=6e-2
    )
    # the crosshair is on all of them: true color, six components, residual
    assert all(page.shot(k) != before[k] for k in range(8))


def test_zooming_one_map_zooms_all_and_reset_undoes_it(opened, scene):
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    page = opened(scene())
    canvas = page.all("canvas.map")[2]
    page.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    page.run("return new Promise((done) => setTimeout(done, 400))")  # scrolling has ended
    page.actions().move_to_element(canvas).perform()
    before = [page.shot(k) for k in range(8)]
    height = page.run("return window.scrollY")
    origin = ScrollOrigin.from_element(canvas, 15, 10)
    page.actions().scroll_from_origin(origin, 0, -400).perform()
    assert all(page.shot(k) != before[k] for k in range(8))
    assert page.run("return window.scrollY") == height
    zoomed = page.shot(0)
    page.actions().click_and_hold(canvas).move_by_offset(40, 25).release().perform()
    assert page.shot(0) != zoomed
    page.click(page.all("#zoom button")[2])
    page.actions().move_to_element(canvas).perform()
    assert [page.shot(k) for k in range(8)] == before


def test_one_scale_for_all_maps(opened, scene):
    page = opened(scene())
    ends = [bar.split("max")[0] for bar in page.texts(".maps .colorbar")[1:7]]
    before = [page.shot(k) for k in range(8)]
    page.click(page.one("#same input"))
    bars = page.texts(".maps .colorbar")[1:7]
    shared = {bar.split("max")[0] for bar in bars}
    assert len(shared) == 1 < len(set(ends))
    assert all("max " in bar for bar in bars)
    changed = [page.shot(k) != before[k] for k in range(8)]
    assert any(changed[1:7])
    assert not changed[0]  # true color
    assert not changed[7]  # the residual
    page.click(page.one("#same input"))
    assert [page.shot(k) for k in range(8)] == before


def test_all_spectra_stand_together_and_lead_to_their_components(opened, scene):
    run = scene()
    page = opened(run)
    entries = page.all("#spectra .entry button")
    assert sorted(e.text for e in entries) == sorted(run.names[0])
    assert len(page.all("#spectra .line")) == 6
    page.click(entries[3])
    assert page.text("#details h3") == entries[3].text
    page.click(page.all("#components-tabs button")[1])
    assert len(page.all("#spectra .line")) == 4
    page.press(page.one("#spectra svg[role='img']"), "\ue014")
    assert page.text("#spectra .where") == "at wavelength (nm) 400"


def test_bands_by_name(opened, scene):
    names = np.array([f"B{k:02d}" for k in range(1, 31)])[:12]
    f = factorize(scene.data.X[:12], [4, 2], max_iter=3, tol=0, random_state=0)
    page = opened(Run("bands", replace(f, layout=Layout(image_shape=(32, 40), features=names))))
    assert set(names) <= set(page.texts("#spectra .tick"))
    assert set(names) <= set(page.texts("#details .tick"))
    page.press(page.one("#spectra svg[role='img']"), "\ue014", "\ue014")
    assert page.text("#spectra .where") == "at band B02"
    assert page.text(".maps .colorbar") == "as fitted at B04, B03, B02"


def test_maps_of_the_other_layers(opened, scene):
    page = opened(scene())
    assert len(page.all("canvas.map")) == 8
    page.click(page.all("#components-tabs button")[2])
    assert len(page.all("canvas.map")) == 4
    assert page.one("#components-tabs [aria-selected='true']").text == "Layer 3"


def test_pixels_without_data(opened, scene):
    valid = np.ones((32, 49), dtype=bool)
    valid[:, :9] = False
    page = opened(scene(layout=Layout(image_shape=(32, 49), valid=valid)))
    canvas = page.one("canvas.map")
    page.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    page.actions().move_to_element_with_offset(canvas, 3 - canvas.rect["width"] // 2, 0).perform()
    assert page.text(".readout .place").endswith("column 0")
    assert page.texts(".readout .hint") == ["no data"]


def test_charts_read_their_values(opened, scene):
    run = scene()
    page = opened(run)
    charts = page.all("#errors .chart")
    assert len(charts) == 3
    legend = charts[1].find_elements(By.CSS_SELECTOR, ".value")
    final = 100 * np.sqrt(run.f.history.data_errors[-1])
    assert [number(v.text) for v in legend] == pytest.approx(final, rel=6e-2)
    page.press(charts[1].find_element(By.CSS_SELECTOR, "svg[role='img']"), "\ue014", "\ue014")
    then = 100 * np.sqrt(run.f.history.data_errors[1])
    assert [number(v.text) for v in legend] == pytest.approx(then, rel=6e-2)
    assert charts[1].find_element(By.CSS_SELECTOR, ".where").text == "at sweep 1"
    page.click(page.all("#errors-tabs button")[1])
    assert page.texts("#errors .label")[0] == "seconds"


def test_curves_are_broken_at_bad_bands(opened, scene):
    bands = np.r_[1:11, 15:35]
    page = opened(scene(layout=replace(scene.data.layout, bands=bands)))
    assert page.one("#details .line").get_attribute("d").count("M") == 2
    assert page.texts("#details .label")[0] == "wavelength (nm)"


def test_truth_is_sorted_and_leads_to_components(opened, scene):
    page = opened(scene())
    scores = [number(t) for t in page.texts(".truth-layer:first-child td.number:nth-child(3)")]
    assert scores == sorted(scores)
    assert len(scores) == 6
    page.click(page.one(".truth-layer tbody tr:nth-child(2) button"))
    wanted = page.texts(".truth-layer tbody tr:nth-child(2) td")
    assert page.text("#details h3").rstrip("?") == f"{wanted[1]} {wanted[0]}"


def test_settings_can_be_copied(opened, scene):
    run = scene()
    page = opened(run)
    assert page.text("#settings pre") == run.config
    assert page.texts("#settings pre")[1] == "deepmf fit --config config.toml -o again/"
    page.click(page.one(".copy"))
    page.run("return new Promise((done) => setTimeout(done, 200))")
    assert page.text(".copy") == "Copied"


# --- other kinds of data ------------------------------------------------------------------------


def test_words(opened, table):
    words = np.array([f"word{i}" for i in range(30)])
    run = table(features=words, samples=np.array([f"doc{i}" for i in range(60)]))
    page = opened(run)
    assert len(page.all(".column")) == 5
    best = words[np.argmax(run.f.W[1][:, 1])]
    page.click(page.all("#components-tabs button")[1])
    page.click(page.one("[data-component='2/1'] button"))
    assert page.text("#details .bar-name") == best
    assert len(page.all("#details .detail-figure li")) == 15
    assert page.all("[data-node='2/1'] .word")[0].get_property("textContent") == best


def test_pictures(opened, pictures):
    page = opened(pictures)
    assert len(page.all(".pictures img")) == 7
    page.click(page.all(".component")[3])
    assert page.one(".component.chosen")
    assert page.one(".big-picture").get_property("naturalWidth") == 6
    assert not page.all("canvas.map")


def test_a_crowd_of_components_scrolls_inside_the_graph(opened, table):
    words = np.array([f"word{i}" for i in range(120)])
    page = opened(table(m=120, ranks=(50, 20, 5), features=words, sweeps=1))
    assert len(page.all(".node")) == 75
    wide = "const g = document.getElementById('graph'); return [g.scrollWidth, g.clientWidth]"
    inner, outer = page.run(wide)
    assert inner > outer
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    page.click(page.node(1, 49))
    assert page.one(".node.chosen").get_attribute("data-node") == "1/49"


ODD = {
    "one layer": lambda scene, table: scene((4,), truth=False),
    "rank one": lambda scene, table: scene((1,), truth=False, residual=False),
    "multilayer": lambda scene, table: scene(model="multilayer"),
    "signed": lambda scene, table: scene(truth=False, constraint_W="none", constraint_H="none"),
    "bars": lambda scene, table: table(m=3, ranks=(2,)),
    "a curve": lambda scene, table: table(m=60, ranks=(4, 2)),
    "long names": lambda scene, table: table(features=np.array(["long " * 99] * 30)),
    "one row": lambda scene, table: start_only(scene()),
    "constant": lambda scene, table: constant(scene()),
    "diverged": lambda scene, table: diverged(scene()),
}


def start_only(run):
    first = History(**{name: a[:1] for name, a in run.f.history.to_dict().items()})
    return replace(run, f=replace(run.f, history=first), config="", facts={})


def constant(run):
    H = [np.ones_like(run.f.H[0]), np.zeros_like(run.f.H[1]), run.f.H[2]]
    return replace(run, f=replace(run.f, H=H))


def diverged(run):
    W, H = [M.copy() for M in run.f.W], [M.copy() for M in run.f.H]
    W[1][3, 0] = H[0][2, 5] = H[2][0, 0] = np.nan
    columns = {name: a.copy() for name, a in run.f.history.to_dict().items()}
    columns["objective"][-1] = columns["data_errors"][-1, 1] = np.nan
    f = replace(run.f, W=W, H=H, history=History(**columns), stop_reason="diverged")
    return replace(run, f=f)


@pytest.mark.parametrize("kind", ODD)
def test_odd_runs_are_shown_without_complaint(opened, scene, table, kind):
    run = ODD[kind](scene, table)
    page = opened(run)
    assert len(page.all(".node")) == sum(run.f.ranks)
    for layer, rank in enumerate(run.f.ranks, start=1):
        page.click(page.node(layer, rank - 1))
        assert page.one(".node.chosen").get_attribute("data-node") == f"{layer}/{rank - 1}"
    assert "NaN" not in page.run(
        "const values = [];"
        "for (const node of document.querySelectorAll('svg *'))"
        "  for (const { name, value } of node.attributes) if (name !== 'href') values.push(value);"
        "return values.join()"
    )
    assert "undefined" not in page.text("body main")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


def test_names_never_become_markup(opened, table):
    run = table(features=np.array([EVIL] * 30), samples=np.array([EVIL] * 60))
    run = replace(run, name=EVIL, config=EVIL, facts={EVIL: EVIL}, notes=[EVIL])
    page = opened(run, run, title=EVIL, labels=[EVIL + "1", EVIL + "2"])
    assert page.chrome.title.startswith("</script><img")
    assert page.all("img") == []
    assert page.text("#details .bar-name") == EVIL
    assert page.text("#notes p") == EVIL


# --- several runs -------------------------------------------------------------------------------


@pytest.fixture
def compared(opened, scene):
    runs = [scene(), scene(model="data-centric"), scene((5, 3), truth=False)]
    ranking = Ranking(["run", "score"], [["b", 3.0], ["a", 12.0], ["c", float("nan")]])
    return runs, opened(*runs, ranking=ranking, labels=["a", "b", "c"])


def test_the_ranking_sorts(compared):
    _, page = compared
    first = "#ranking-table tbody td:first-child"
    assert page.texts(first) == ["b", "a", "c"]
    head = "#ranking-table th:nth-child({}) button"
    page.click(page.one(head.format(1)))
    assert page.texts(first) == ["a", "b", "c"]
    page.click(page.one(head.format(2)))
    assert page.texts(first) == ["b", "a", "c"]
    page.click(page.one(head.format(2)))
    assert page.texts(first) == ["a", "b", "c"]  # the missing value stays last
    assert page.one("#ranking-table th:nth-child(2)").get_attribute("aria-sort") == "descending"


def test_the_ranking_is_explained_and_words_come_last(opened, scene):
    rows = [["a", 2.0, 0.5], ["b", "diverged", 0.1234], ["c", 12.3456, 0.25]]
    columns = ["run", "error 1 %", "sparsity 1"]
    page = opened(scene(), scene(), scene(), ranking=Ranking(columns, rows), labels=list("abc"))
    assert page.texts("#ranking-terms dt") == ["error", "sparsity"]
    assert "Hoyer" in page.all("#ranking-table th")[2].get_attribute("title")
    assert page.texts("#ranking-table td:nth-child(2)") == ["2.00", "diverged", "12.35"]
    assert page.texts("#ranking-table td:nth-child(3)") == ["0.500", "0.123", "0.250"]
    for names in (["a", "c", "b"], ["c", "a", "b"]):
        page.click(page.one("#ranking-table th:nth-child(2) button"))
        assert page.texts("#ranking-table tbody td:first-child") == names


def test_the_switch_changes_all_sections(compared):
    _, page = compared
    assert page.texts("#runs button") == ["a", "b", "c"]
    assert len(page.all(".node")) == 12
    page.click(page.all("#runs button")[2])
    assert len(page.all(".node")) == 8
    assert "5 > 3 components" in page.text("#summary")
    assert page.texts("#components-tabs button") == ["Layer 1", "Layer 2"]
    assert not page.one("#truth").is_displayed()
    assert page.one("#ranking-table tr.chosen td").text == "c"


def test_runs_side_by_side_and_their_errors_overlaid(compared):
    runs, page = compared
    assert page.texts("#side-table thead th") == list(runs[0].truth[1].names)
    cells = page.all("#side-table tbody tr:nth-child(2) .side-cell")
    k = int(runs[1].scores[1].order[4])
    page.click(cells[4])
    assert page.one("#runs [aria-selected='true']").text == "b"
    assert page.one(".node.chosen").get_attribute("data-node") == f"1/{k}"
    entries = page.all("#errors .chart")[0].find_elements(By.CSS_SELECTOR, ".entry")
    assert [e.text.split()[0] for e in entries] == ["a", "b", "c"]


def test_a_coarser_page_says_so(opened, scene, monkeypatch):
    monkeypatch.setattr("deepmf.report.page._LARGEST", 105_000)
    page = opened(scene())
    assert "means over 2 × 2 of the 32 × 40 pixels" in page.text("#notes")
    canvas = page.one("canvas.map")
    page.run("arguments[0].scrollIntoView({block: 'center'})", canvas)
    page.actions().move_to_element_with_offset(canvas, 5, 5).perform()
    assert page.text(".readout .place") == "row 16–17, column 20–21"


@pytest.mark.parametrize("width", [700, 1000, 1900])
def test_no_width_breaks_the_page(opened, scene, width):
    page = opened(scene(), scene(model="multilayer"))
    page.chrome.set_window_size(width, 900)
    try:
        page.run("return new Promise((done) => setTimeout(done, 300))")
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        page.chrome.set_window_size(1400, 1000)
