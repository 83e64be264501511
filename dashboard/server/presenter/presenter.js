// The presenter's window: notes, what comes next, and a clock. It hears from the lecture in another tab of this browser, by
// the channel of podium.js, and sends it the keys that are pressed here. The server is asked for nothing.

const CHANNEL = 'attention-lab-lecture';
const BEGAN = 'attention-lab-began'; // when the lecture began, in milliseconds, kept over a reload of this window
const LEFT = 5000; // milliseconds after which a lecture that said goodbye has been left
const KEYS = /^([a-z.+−-]|Arrow(Left|Right)|Page(Up|Down))$/i; // of the lecture, and of whatever page its step stands on

const channel = new BroadcastChannel(CHANNEL);
const at = (id) => document.getElementById(id);
let shown = null;
let closing = 0;

channel.addEventListener('message', ({ data }) => {
  if (data.step || data.over) clearTimeout(closing);
  if (data.step) show(data.step);
  if (data.votes) at('votes').textContent = counted(data.votes);
  if (data.over) closing = setTimeout(close, LEFT); // the next page of a lecture begins with the end of the one before
});
channel.postMessage({ hello: true });

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS.test(event.key)) return;
  event.preventDefault();
  tell(event.key, event);
});
for (const button of document.querySelectorAll('[data-key]'))
  button.addEventListener('click', (event) => tell(button.dataset.key, event));
at('restart').addEventListener('click', () => {
  sessionStorage.setItem(BEGAN, String(Date.now()));
  tick();
});
setInterval(tick, 1000);

/** Send a key to the lecture, and when it was pressed: it may reach a page that has changed since. */
function tell(key, { timeStamp }) {
  channel.postMessage({ key, at: performance.timeOrigin + timeStamp });
}

/** A step as the lecture tells it: {lecture, minutes, at, count, title, notes, next, covered, verdict}. */
function show(step) {
  if (shown?.lecture !== step.lecture) sessionStorage.setItem(BEGAN, sessionStorage.getItem(BEGAN) ?? String(Date.now()));
  shown = step;
  at('lecture').textContent = step.lecture;
  at('place').textContent = `Step ${step.at} of ${step.count}`;
  at('title').textContent = step.title;
  at('state').textContent = step.covered ? `The page is covered. It asks: ${step.covered} → shows the answer.` : step.verdict;
  at('notes').replaceChildren(...paragraphs(step.notes || 'There are no notes for this step.'));
  at('next-part').hidden = false;
  at('next').textContent = step.next || 'This is the last step.';
  document.title = `${step.at} of ${step.count}: ${step.title}`;
  tick();
}

/** How a room predicts (server/rooms/votes.py), in a sentence. */
function counted({ question, followers, votes, counts, mean, sd, words }) {
  const follow = `${followers} follow${followers === 1 ? 's' : ''}.`;
  if (!question || !votes) return follow;
  const number = (value) => value.toFixed(2).replace('-', '−');
  const list = (values) => values.map(number).join(', ');
  const what = counts
    ? Object.entries(counts).map(([place, count]) => `choice ${Number(place) + 1}: ${count}`).join(', ')
    : words
      ? words.slice(-5).map((each) => `“${each}”`).join(', ')
      : typeof mean === 'number'
        ? `mean ${number(mean)}, standard deviation ${number(sd)}`
        : sd
          ? `means ${list(mean)}`
          : '';
  return `${follow} Predictions: ${votes}${what ? `; ${what}` : ''}.`;
}

function close() {
  shown = null;
  at('state').textContent = 'The lecture was left. Open one, and this page follows it.';
  at('notes').replaceChildren();
  at('next-part').hidden = true;
}

function tick() {
  if (!shown) return;
  const minutes = (Date.now() - Number(sessionStorage.getItem(BEGAN))) / 60000;
  const seconds = Math.floor(minutes * 60) % 60;
  const now = new Date().toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  at('clock').textContent = `${Math.floor(minutes)}:${String(seconds).padStart(2, '0')} of ${shown.minutes} min · ${now}`;
  at('clock').classList.toggle('over', minutes > shown.minutes);
}

/** Markdown's paragraphs; what stands between stars is emphasised. */
function paragraphs(text) {
  return text.split(/\n\s*\n/).map((paragraph) => {
    const made = document.createElement('p');
    paragraph.split(/\*\*?([^*]+)\*\*?/).forEach((part, number) => {
      const piece = number % 2 ? document.createElement('em') : document.createTextNode(part);
      if (number % 2) piece.textContent = part;
      made.append(piece);
    });
    return made;
  });
}
