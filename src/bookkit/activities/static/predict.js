// predict: the answer appears only when a guess was committed, next to it.
bookkit.define("predict", { guess: "text" }, (section, state, { save, say, done }) => {
  const form = section.querySelector(".activity-guess");
  const field = form.querySelector("input");
  const answer = section.querySelector(".activity-answer");
  const show = () => {
    field.value = state.guess;
    field.readOnly = true;
    form.querySelector("button").hidden = true;
    say(`Your guess: ${state.guess}`);
    answer.hidden = false;
    answer.open = true;
    done();
  };
  const commit = () => {
    const guess = field.value.trim();
    if (!guess) return say("Write down a guess first: a wrong one teaches more than none.");
    state.guess = guess;
    save();
    show();
    answer.querySelector("summary").focus();
  };
  answer.hidden = true;
  if (state.guess) show();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    commit();
  });
  form.querySelector("button").addEventListener("click", commit);
});
