// check and eliminate: options, one of which is right.
bookkit.define("check", { choice: "text" }, (section, state, { save, say, done, on }) => {
  const radios = [...section.querySelectorAll("input[type=radio]")];
  const reasons = radios.map((radio) => radio.closest("li").querySelector("details"));
  const show = (chosen) => {
    reasons.forEach((reason, i) => {
      reason.hidden = radios[i] !== chosen;
      reason.open = radios[i] === chosen;
    });
    const right = "right" in chosen.dataset;
    say(right ? "✓ Right." : "✗ Not this one. Read why, and choose again.");
    if (right) done();
  };
  const hide = () => reasons.forEach((reason) => (reason.hidden = true));
  hide();
  radios.forEach((radio) =>
    radio.addEventListener("change", () => {
      hide(); // what was said belongs to another option
      say("");
    }),
  );
  const kept = radios.find((radio) => radio.value === state.choice);
  if (kept) {
    kept.checked = true;
    show(kept);
  }
  on({
    check() {
      const chosen = radios.find((radio) => radio.checked);
      if (!chosen) return say("Choose an option first.");
      state.choice = chosen.value;
      save();
      show(chosen);
    },
  });
});

bookkit.define("eliminate", { struck: "texts" }, (section, state, { save, say, done, on }) => {
  const items = [...section.querySelectorAll("li[data-option]")];
  const survivor = items.find((item) => item.querySelector("[data-right]"));
  const wrong = items.filter((item) => item !== survivor);
  const struck = new Set();
  const strike = (item) => {
    struck.add(item.dataset.option);
    item.classList.add("activity-struck");
    item.querySelector("button").textContent = "✗ Struck";
    item.querySelector("button").setAttribute("aria-disabled", "true");
    item.querySelector("details").hidden = false;
    item.querySelector("details").open = true;
    const left = wrong.length - struck.size;
    say(left ? `✗ Struck, for the reason below it. Still wrong: ${left}.` : "✓ All wrong options are struck. One survives.");
    if (left) return;
    survivor.querySelector("button").hidden = true;
    survivor.querySelector("details").hidden = false;
    survivor.querySelector("details").open = true;
    done();
  };
  items.forEach((item) => (item.querySelector("details").hidden = true));
  wrong.filter((item) => (state.struck ?? []).includes(item.dataset.option)).forEach(strike);
  on({
    strike(button) {
      const item = button.closest("li");
      if (item === survivor) return say("Not this one: nothing is wrong with it. Look at the others.");
      if (struck.has(item.dataset.option)) return;
      strike(item);
      state.struck = [...struck];
      save();
    },
  });
});
