// A widget of a notebook (anywidget's interface): a document that Python wrote, in the reader of all documents. What is
// chosen goes to Python, which sends the message of the part that depends on it (dashboard/notebook/widget.py).

import { inflated } from '../kit/gzip.js';
import { luminance } from '../kit/theme.js';
import { hold } from '../plot/plotly_loader.js';
import { element } from '../prediction/element.js';
import { Reader } from './reader.js';

const THEMED = ['class', 'style', 'theme', 'data-theme', 'data-jp-theme-light', 'data-vscode-theme-kind']; // what notebooks change with their theme

/** `styles` are the style sheets of the components by name, `rules` that of the page around them. */
export default (styles, rules) => ({
  render({ model, el }) {
    const page = element('main');
    // Neither the notebook's style sheets nor ours reach what is the other's.
    const inside = element('div', { className: 'attention-lab' });
    inside.attachShadow({ mode: 'open' }).append(element('style', { textContent: rules }), page);
    el.append(inside);
    hold(() => asked(model));
    const reader = new Reader(page, styles, {
      themed: inside,
      fired(key, value) {
        if (key !== model.get('chooses') || !Number.isInteger(value)) return;
        model.set('focus', value);
        model.save_changes();
      },
    });
    const show = () => reader.show(model.get('document'));
    const put = () => reader.put(model.get('changes'), bytes(model.get('message')));
    const look = () => {
      if (model.get('dark') === isDark(el)) return;
      model.set('dark', isDark(el));
      model.save_changes();
    };
    const themes = new MutationObserver(look);
    for (const each of [document.documentElement, document.body]) themes.observe(each, { attributeFilter: THEMED });
    model.on('change:document', show);
    model.on('change:message', put);
    look();
    show();
    return () => {
      themes.disconnect();
      model.off('change:document', show);
      model.off('change:message', put);
    };
  },
});

/** plotly.js from Python, as text: it is sent when the first figure of a notebook needs it, and stays out of its file. */
function asked(model) {
  return new Promise((resolve) => {
    const answered = async (content, [packed]) => {
      if (content !== 'plotly') return;
      model.off('msg:custom', answered);
      resolve(new TextDecoder().decode(await inflated(bytes(packed))));
    };
    model.on('msg:custom', answered);
    model.send('plotly');
  });
}

const bytes = ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength);

/** Is the ground that an element stands on dark? Its colour may be written in any way, so it is painted. */
function isDark(element) {
  const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  for (let each = element; each; each = each.parentElement ?? each.getRootNode().host) {
    context.fillStyle = getComputedStyle(each).backgroundColor;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, opacity] = context.getImageData(0, 0, 1, 1).data;
    if (opacity > 127) return luminance([r, g, b]) < 0.2;
    context.clearRect(0, 0, 1, 1);
  }
  return false;
}
