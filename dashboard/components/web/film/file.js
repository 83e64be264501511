// The film in a file of its own (see dashboard/components/film_file.py): the same player, its message in the page.

import { Player } from './player.js';

const text = document.getElementById('film-message').textContent.trim();
const message = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
new Player(document.body).update(message);
