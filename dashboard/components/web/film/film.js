// The film as a Streamlit component; what it does is in player.js.

import { Player } from '../../attention-lab.shared/film/player.js';
import { mounting } from '../../attention-lab.shared/kit/mount.js';

export default mounting('film', (root) => {
  const player = new Player(root);
  const update = (data, fire) => {
    player.fire = fire;
    player.update(data);
  };
  return { host: player.host, update, dispose: () => player.dispose() };
});
