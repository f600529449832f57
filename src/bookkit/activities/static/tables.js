// fill-table and step: a record's rows.

// Case, spaces and thousands separators do not matter, nor which minus sign is typed.
const plain = (text) => text.toLowerCase().replace(/[\u2212\u2013]/g, "-").replace(/[\s_'’]/g, "").replace(/(\d),(?=\d{3}(\D|$))/g, "$1");
const NUMBER = /^[-+]?(\d+(\.\d*)?|\.\d+)$/;

// A number may be rounded, as long as it keeps two digits: 0.256 and 0.26 stand for 0.2559.
const sameAnswer = (given, answer) => {
  const [a, b] = [plain(given), plain(answer)];
  if (a === b) return true;
  if (!NUMBER.test(a) || !NUMBER.test(b)) return false;
  if (Number(a) === Number(b)) return true;
  const decimals = (a.split(".")[1] ?? "").length;
  const digits = a.replace(/^[-+]?[0.]*/, "").replace(".", "").length;
  const half = 0.5 * 10 ** -decimals;
  return decimals > 0 && digits >= 2 && Math.abs(Number(a) - Number(b)) <= half * (1 + 1e-9);
};

bookkit.define("fill-table", { cells: "texts" }, (section, state, { save, say, done, on }) => {
  const fields = [...section.querySelectorAll("[data-answer]")];
  const mark = (field, text) => (field.closest(".activity-cell").querySelector(".activity-mark").textContent = text);
  const isRight = (field) => sameAnswer(field.value, field.dataset.answer);
  const show = (shown) => {
    for (const field of shown) mark(field, !field.value ? "" : isRight(field) ? "✓ right" : "✗ not yet");
    const right = fields.filter(isRight).length;
    say(`${right} of ${fields.length} cells right.`);
    if (right === fields.length) done();
  };
  const keep = () => {
    state.cells = fields.map((field) => field.value);
    save();
  };
  const reveal = (field) => {
    field.value = field.dataset.answer;
    keep();
    show([field]);
  };
  fields.forEach((field, i) => {
    const kept = (state.cells ?? [])[i] ?? "";
    if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === kept)) field.value = kept;
    field.addEventListener("change", () => {
      keep();
      show([field]);
    });
  });
  if (fields.some((field) => field.value)) show(fields);
  on({
    check: () => show(fields),
    reveal: () => fields.forEach(reveal),
    "reveal-one": (button) => reveal(button.closest(".activity-cell").querySelector("[data-answer]")),
  });
});

bookkit.define("step", { row: "number" }, (section, state, { save, say, done, on }) => {
  const rows = [...section.querySelectorAll(".activity-table tbody tr")];
  const comments = [...section.querySelectorAll("li[data-row]")];
  const last = comments.length - 1;
  const show = () => {
    const now = (state.row = Math.min(state.row ?? 0, last));
    rows.forEach((row, i) => (row.hidden = i > now));
    comments.forEach((comment, i) => (comment.hidden = i !== now));
    section.querySelector("[data-action=back]").setAttribute("aria-disabled", String(now === 0));
    section.querySelector("[data-action=forward]").setAttribute("aria-disabled", String(now === last));
    if (now === last) done();
  };
  const go = (change) => {
    const next = state.row + change;
    if (next < 0 || next > last) return say(next < 0 ? "This is the first row." : "This is the last row.");
    state.row = next;
    save();
    show();
    say(`Row ${next + 1} of ${last + 1}.`);
  };
  show();
  on({ back: () => go(-1), forward: () => go(1) });
  section.addEventListener("keydown", (event) => {
    const change = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!change || event.altKey || event.ctrlKey || event.metaKey || !event.target.closest(".activity-buttons")) return;
    event.preventDefault();
    go(change);
  });
});
