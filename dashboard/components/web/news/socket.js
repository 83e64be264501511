// The socket over which the server tells of news (server/news/routes.py): one a tab, open while something is followed.

import { root } from '../kit/root.js';

const OPENS = 5000; // milliseconds in which it has to open
const LINGERS = 1000; // milliseconds for which it stays open when nothing is followed: a page drawn anew follows again
const AGAIN = 1000; // milliseconds after which it is tried again; twice as many each time, and at most
const SELDOM = 60000;

const handlers = new Map(); // token -> what hears of it
let socket;
let failed = 0; // times in a row
let [said, leaving, trying] = [false, undefined, undefined];

/**
 * Call `hear(version)` when the server tells of what is followed by a token, and `hear(null)` where it cannot, until it
 * can again. Returns what ends that.
 */
export function follow(token, hear) {
  handlers.set(token, hear);
  clearTimeout(leaving);
  if (socket) say();
  else if (trying === undefined) open();
  else hear(null);
  return () => {
    if (handlers.get(token) === hear) handlers.delete(token);
    say();
    if (!handlers.size) leaving = setTimeout(leave, LINGERS);
  };
}

function open() {
  trying = undefined;
  const now = (socket = new WebSocket(new URL('news', root).href.replace(/^http/, 'ws')));
  const late = setTimeout(() => now.close(), OPENS);
  now.onopen = () => {
    clearTimeout(late);
    say();
  };
  now.onmessage = ({ data }) => {
    failed = 0;
    for (const [token, version] of Object.entries(JSON.parse(data))) handlers.get(token)?.(version);
  };
  now.onclose = () => {
    clearTimeout(late);
    if (now === socket) lose();
  };
}

/** Tell the server what is followed, once for all that changes at a time. */
let telling = false;
function say() {
  if (telling) return;
  telling = true;
  queueMicrotask(() => {
    telling = false;
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ follow: [...handlers.keys()] }));
  });
}

/** It was closed, or did not open: everybody asks by the clock, and it is tried again after a while. */
function lose() {
  socket = undefined;
  if (!handlers.size) return;
  if (!said) console.info('Attention Lab: the server’s news do not come through, so this page asks for them by the clock.');
  said = true;
  trying = setTimeout(retry, Math.min(SELDOM, AGAIN * 2 ** failed++) * (1 + Math.random() / 4));
  for (const hear of [...handlers.values()]) hear(null);
}

function retry() {
  trying = undefined;
  if (handlers.size) open();
}

function leave() {
  clearTimeout(trying);
  trying = undefined;
  const now = socket;
  socket = undefined;
  now?.close();
}
