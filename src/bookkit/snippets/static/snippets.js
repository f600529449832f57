// Copies a cell, or the program that is made of it. The programs of a page wait in a script of their own:
// it is loaded when somebody is about to copy one, and it loads from a folder too, where fetch does not.
(() => {
  const downloads = document.querySelector(".snippet-downloads[data-script]");
  let loading;

  function programs() {
    loading ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = downloads.dataset.script;
      script.onload = () => done(window.bookPrograms);
      script.onerror = failed;
      document.head.append(script);
    });
    return loading;
  }

  async function textFor(button, bar) {
    if (button.value === "cell") {
      return `${bar.parentElement.querySelector(".cell_input pre").textContent.trimEnd()}\n`;
    }
    const { pieces, cells } = await programs();
    return cells[bar.dataset.cell].map((piece) => pieces[piece]).join("");
  }

  // Where the browser gives a page no clipboard, an old command still copies what is selected.
  function copySelected(text, button) {
    const field = document.createElement("textarea");
    field.className = "snippet-clipboard";
    field.value = text;
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    button.focus();
    if (!copied) throw new Error("not copied");
  }

  function where(files) {
    return files ? `. It reads ${files}: the archive at the end of the page holds that.` : "";
  }

  async function copy(button) {
    const bar = button.closest(".snippet");
    const status = bar.querySelector("[role=status]");
    status.textContent = "";
    try {
      const text = await textFor(button, bar);
      await (navigator.clipboard?.writeText(text) ?? Promise.reject()).catch(() => copySelected(text, button));
      status.textContent = button.value === "cell" ? "Cell copied" : `Program copied${where(bar.dataset.reads)}`;
    } catch {
      status.textContent = "Not copied. The link at the end of the page has the programs as files.";
    }
  }

  for (const bar of document.querySelectorAll(".snippet")) {
    bar.hidden = false;
    for (const button of bar.querySelectorAll("button")) {
      button.addEventListener("click", () => copy(button));
      if (button.value !== "program") continue;
      for (const event of ["pointerenter", "focus"]) {
        button.addEventListener(event, () => programs().catch(() => {}), { once: true });
      }
    }
  }
})();
