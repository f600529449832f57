// sort: one list of choices an item.
bookkit.define("sort", { buckets: "texts" }, (section, state, { save, say, done, on }) => {
  const selects = [...section.querySelectorAll("select")];
  const show = () => {
    let right = 0;
    for (const select of selects) {
      const item = select.closest("li");
      const good = select.value === select.dataset.answer;
      right += good;
      item.querySelector(".activity-mark").textContent = !select.value ? "" : good ? "✓ right" : "✗ not there";
      item.querySelector("details").hidden = !select.value;
      if (good) item.querySelector("details").open = true;
    }
    say(`${right} of ${selects.length} right.`);
    if (right === selects.length) done();
  };
  selects.forEach((select, i) => {
    const kept = (state.buckets ?? [])[i];
    if ([...select.options].some((option) => option.value === kept)) select.value = kept;
    select.closest("li").querySelector("details").hidden = true;
  });
  if (selects.some((select) => select.value)) show();
  on({
    check() {
      if (!selects.some((select) => select.value)) return say("Choose a place for at least one item first.");
      state.buckets = selects.map((select) => select.value);
      save();
      show();
    },
  });
});
