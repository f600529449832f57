// discuss, trap, draw: what opens, the reader's notes, and boxes to tick.
bookkit.define("discuss", { notes: "text", read: "boolean" }, (section, state, { save, done }) => {
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

bookkit.define("trap", { opened: "texts" }, (section, state, { save, done }) => {
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

bookkit.define("draw", { ticked: "texts" }, (section, state, { save, say, done }) => {
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
