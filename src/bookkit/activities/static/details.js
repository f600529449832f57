// discuss, trap, draw, exercise: what opens, the reader's notes, and boxes to tick.
bookkit.define(["discuss"], { notes: "string", read: "boolean" }, (section, state, { save, done }) => {
  const notes = section.querySelector("textarea");
  notes.value = state.notes ?? "";
  notes.addEventListener("input", () => {
    state.notes = notes.value;
    save();
  });
  if (state.read) done();
  section.querySelector(".activity-answer").addEventListener("toggle", () => {
    state.read = true;
    save();
    done();
  });
});

bookkit.define(["trap"], { opened: "strings" }, (section, state, { save, done }) => {
  const all = [...section.querySelectorAll(".activity-answer")];
  const opened = new Set(state.opened);
  const look = () => all.every((_, i) => opened.has(String(i))) && done();
  all.forEach((details, i) =>
    details.addEventListener("toggle", () => {
      opened.add(String(i));
      state.opened = [...opened];
      save();
      look();
    }),
  );
  look();
});

bookkit.define(["draw"], { ticked: "strings" }, (section, state, { save, say, done }) => {
  const boxes = [...section.querySelectorAll("input[type=checkbox]")];
  const look = () => {
    const ticked = boxes.filter((box) => box.checked);
    say(`${ticked.length} of ${boxes.length} arrows ticked.`);
    if (ticked.length === boxes.length) done();
  };
  for (const box of boxes) {
    box.checked = (state.ticked ?? []).includes(box.value);
    box.addEventListener("change", () => {
      state.ticked = boxes.filter((b) => b.checked).map((b) => b.value);
      save();
      look();
    });
  }
  if (boxes.some((box) => box.checked)) look();
});

bookkit.define(["exercise"], { hints: "number", passes: "boolean" }, (section, state, { save, done }) => {
  const hints = [...section.querySelectorAll(".activity-hint")];
  const box = section.querySelector("input[value=passes]");
  const show = () => hints.forEach((hint, i) => (hint.hidden = i > (state.hints ?? 0)));
  hints.forEach((hint, i) =>
    hint.addEventListener("toggle", () => {
      state.hints = Math.max(state.hints ?? 0, i + 1);
      save();
      show();
    }),
  );
  show();
  box.checked = state.passes ?? false;
  if (box.checked) done();
  box.addEventListener("change", () => {
    state.passes = box.checked;
    save();
    if (box.checked) done();
  });
});
