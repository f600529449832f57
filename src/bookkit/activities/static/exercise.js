// exercise: hints that come one at a time, and a box to tick.
bookkit.define("exercise", { hints: "number", passes: "boolean" }, (section, state, { save, done }) => {
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
