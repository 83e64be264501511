// The film as a Streamlit component; what it does is in film_player.js.

import { Player } from './film_player.js';

const mounted = new WeakMap(); // parentElement -> Player; Streamlit calls the default export at every rerun

export default function ({ data, parentElement, setTriggerValue }) {
  let player = mounted.get(parentElement);
  if (!player) {
    player = new Player(parentElement);
    mounted.set(parentElement, player);
  }
  player.fire = setTriggerValue;
  player.update(data);
  return () =>
    // Streamlit also calls this when data outruns a call in progress, while the film lives on: ask the document.
    setTimeout(() => {
      if (player.host.isConnected) return;
      player.dispose();
      mounted.delete(parentElement);
    });
}
